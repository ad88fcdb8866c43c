"""One evaluation point: the functions of words that depend on it.

Two programs that are compared share one trial. What has no law in the field, a sine or an unknown library
call, is a hash keyed by the trial's seed, the same for both; so are sizes and the order of numbers (`kappa`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlotool.backends.field import words as w
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.exponential import Exponential
from hlotool.backends.field.functions import even, odd, opaque
from hlotool.backends.field.pseudo_real import F64_DIGITS, Kappa
from hlotool.backends.field.words import Words
from hlotool.facts.signs import Order
from hlotool.ir.arrays import Array

#: Direction → from (less, equal) to the answer, for numbers that are not NaN.
_ANSWERS: dict[str, Callable[[Array, Array], Array]] = {
    "LT": lambda less, same: less & ~same,
    "LE": lambda less, same: less | same,
    "GT": lambda less, same: ~(less | same),
    "GE": lambda less, same: ~less | same,
}
DIRECTIONS = ("EQ", "NE", *_ANSWERS)

_TWO = w.integers(2)
_HALF = w.rational(1, 2)

#: The largest exponent, doubled, whose power is a product.
_LARGEST_POWER = 64


@dataclass(slots=True, eq=False)
class Trial:
    """The functions at one point.

    Attributes:
        constants: how the constants of the programs are read.
        seed: of the point.
        remembers_exp: whether logarithms will be asked for.
        nests_exp: whether exponentials may be part of exponents.
        watches_roots: whether `roots` and `imaginary_roots` are counted.
        roots: how many roots were taken at this point.
        imaginary_roots: of them, those of numbers that are no squares. What is under a root in a program that
            makes sense is not negative, but one of two sums in the field is: then √x √x = -x.
        half: in which residue results are compared: 0 for P, where exp has laws, 1 for Q, where log has.
        digits: binary digits after the first that sizes have, where a program looks at the bits of floats.
        watches_infinities: whether `has_infinities` is looked for, in all that instructions return.
        has_infinities: an infinity or NaN was computed at this point: it is none of real numbers.
        exponential: exp and its inverse.
        kappa: sizes, and the order of numbers.
    """

    constants: Constants
    seed: int = 0
    remembers_exp: bool = True
    nests_exp: bool = True
    half: int = 0
    watches_roots: bool = False
    digits: int = F64_DIGITS
    watches_infinities: bool = False
    has_infinities: bool = field(default=False, init=False)
    roots: int = field(init=False)
    imaginary_roots: int = field(init=False)
    exponential: Exponential = field(init=False)
    kappa: Kappa = field(init=False)

    def __post_init__(self) -> None:
        self.restart(self.seed)

    def restart(self, seed: int, around: float = 0.0) -> None:
        """Go to the point of `seed`; what was computed at another one no longer counts.

        Args:
            seed: of the point.
            around: binary logarithm of the sizes that numbers have there, up to a factor of 2^8.
        """
        self.seed = seed
        self.exponential = Exponential(seed, self.remembers_exp, self.nests_exp)
        self.kappa = Kappa(seed, lambda: self.constants.known, around, self.digits)
        self.has_infinities = False
        self.roots = self.imaginary_roots = 0

    # -- functions

    def opaque(self, name: str, *operands: Words) -> Words:
        """A function without laws."""
        return opaque(name, self.seed, *operands)

    def odd(self, name: str, x: Words) -> Words:
        """A function without laws but f(-x) = -f(x)."""
        return odd(name, self.seed, x)

    def exp(self, x: Words) -> Words:
        """exp(a + b) = exp(a) exp(b), always positive; exp(-inf) = 0."""
        return self.exponential(x)

    def log(self, x: Words) -> Words:
        """The inverse of `exp` where that has been; log 1 = 0, log 0 = -inf."""
        return self.exponential.log(x)

    def expm1(self, x: Words) -> Words:
        """exp(x) - 1."""
        return w.subtract(self.exp(x), w.ONE)

    def logistic(self, x: Words) -> Words:
        """1 / (1 + exp(-x))."""
        return w.inverse(w.add(self.exp(w.negate(x)), w.ONE))

    def tanh(self, x: Words) -> Words:
        """(exp(2x) - 1) / (exp(2x) + 1)."""
        e = self.exp(w.add(x, x))
        return w.divide(w.subtract(e, w.ONE), w.add(e, w.ONE))

    def sqrt(self, x: Words) -> Words:
        """The root of a positive number; multiplicative."""
        root = w.sqrt(x)
        if self.watches_roots:
            self.roots += root.size
            self.imaginary_roots += int(np.count_nonzero(~w.equal(w.multiply(root, root), x) & (x != w.INF)))
        self.exponential.note_power(root, x, _HALF)
        return root

    def rsqrt(self, x: Words) -> Words:
        """1 / √x."""
        result = w.inverse(self.sqrt(x))
        self.exponential.note_power(result, x, w.negate(_HALF))
        return result

    def tan(self, x: Words) -> Words:
        """The quotient of sine and cosine."""
        return w.divide(self.sine(x), self.cosine(x))

    def sinh(self, x: Words) -> Words:
        """(exp(x) - exp(-x)) / 2."""
        e = self.exp(x)
        return w.divide(w.subtract(e, w.inverse(e)), _TWO)

    def cosh(self, x: Words) -> Words:
        """(exp(x) + exp(-x)) / 2."""
        e = self.exp(x)
        return w.divide(w.add(e, w.inverse(e)), _TWO)

    def sine(self, x: Words) -> Words:
        """An odd function."""
        return odd("sine", self.seed, x)

    def cosine(self, x: Words) -> Words:
        """An even function, 1 at 0."""
        return even("cosine", self.seed, x, w.ONE)

    def power(self, x: Words, y: Words) -> Words:
        """x^y: a product where y is a multiple of 1/2 and not large, else exp(y log x)."""
        exponents = self.kappa(y)
        twice = 2 * exponents
        is_short = (twice == np.rint(twice)) & (np.abs(twice) <= _LARGEST_POWER)
        known = np.unique(exponents[is_short]).tolist()
        if len(known) == 1 and is_short.all():
            base = np.broadcast_to(x, np.broadcast_shapes(np.shape(x), np.shape(y)))
            return w.power(base, int(2 * known[0]))
        result = np.array(self.exponential.power(x, y))
        bases = np.broadcast_to(x, result.shape)
        for exponent in known:
            at = np.broadcast_to(exponents == exponent, result.shape)
            result[at] = w.power(bases[at], int(2 * exponent))
        return result

    # -- size and order

    def compare(
        self, direction: str, a: Words, b: Words, is_total: bool = False, known: Order | None = None
    ) -> Array:
        """a against b as HLO's `direction` says.

        Args:
            direction: `LT`, …
            a: left side.
            b: right side.
            is_total: NaN is the largest; otherwise it only differs.
            known: what is known of all elements; nothing else decides then.
        """
        same = w.equal(a, b)
        if direction in ("EQ", "NE"):
            equal = same if is_total else same & (a != w.NAN)
            return np.asarray(equal ^ (direction == "NE"))
        if known is not None:
            return _ANSWERS[direction](~same & (known is Order.AT_MOST), same)
        a_nan, b_nan = a == w.NAN, b == w.NAN
        less = self.kappa.less(a, b)
        same = same | self.kappa.tied(a, b) if self.kappa.has_ties else same
        if is_total:
            return _ANSWERS[direction](np.where(a_nan | b_nan, b_nan & ~a_nan, less), same)
        return np.asarray(_ANSWERS[direction](less, same) & ~(a_nan | b_nan))

    def sign(self, x: Words) -> Words:
        """-1, 0 or 1; NaN stays."""
        sizes = self.kappa(x)
        return np.where(np.isnan(sizes), x, embedded(np.sign(np.nan_to_num(sizes))))

    def rounded(self, x: Words, function: Callable[[Array], Array]) -> Words:
        """`function`, which makes numbers whole, of the pseudo-real values."""
        sizes = self.kappa(x)
        finite = np.isfinite(sizes)
        return np.where(finite, embedded(function(np.where(finite, sizes, 0.0))), x)

    def remainder(self, a: Words, b: Words) -> Words:
        """a - b trunc(a / b)."""
        return w.subtract(a, w.multiply(b, self.rounded(w.divide(a, b), np.trunc)))


def embedded(numbers: npt.ArrayLike) -> Words:
    """The words of integers, or of floats that are whole numbers."""
    array = np.asarray(numbers)
    if array.dtype.kind == "f":
        array = _exact_integers(array)
    elif array.dtype.kind not in "biu":
        array = array.astype(np.int64)
    return w.integers(array)


def _exact_integers(whole: Array) -> Array:
    """Floats that are whole numbers as integers, of Python's where they are too large for 64 bits."""
    if whole.size == 0 or float(np.abs(whole).max()) < 2.0**62:
        return whole.astype(np.int64)
    return np.array([int(v) for v in whole.reshape(-1).tolist()], object).reshape(whole.shape)
