"""One evaluation point: the functions of words that depend on it.

Two programs that are compared share one trial. What has no law in the field, a sine or an unknown library
call, is a hash keyed by the trial's seed, the same for both; so are sizes and the order of numbers (`kappa`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlotool.backends.field import words as w
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.exponential import Exponential, opaque
from hlotool.backends.field.pseudo_real import kappa, ranks
from hlotool.backends.field.words import Words
from hlotool.ir.dtypes import Array

#: The largest exponent, doubled, whose power is a product.
_LARGEST_POWER = 64


@dataclass(slots=True, eq=False)
class Trial:
    """The functions at one point.

    Attributes:
        constants: how the constants of the programs are read.
        seed: of the point.
        exponential: exp and its inverse.
    """

    constants: Constants
    seed: int = 0
    exponential: Exponential = field(init=False)

    def __post_init__(self) -> None:
        self.restart(self.seed)

    def restart(self, seed: int) -> None:
        """Go to the point of `seed`; what was computed at another one no longer counts."""
        self.seed = seed
        self.exponential = Exponential(seed)

    # -- functions

    def opaque(self, name: str, *operands: Words) -> Words:
        """A function without laws."""
        return opaque(name, self.seed, *operands)

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

    def odd(self, name: str, x: Words) -> Words:
        """A function without laws but f(-x) = -f(x)."""
        flip = _is_upper(x)
        value = self.opaque(name, np.where(flip, w.negate(x), x))
        return np.where(w.equal(x, w.ZERO), w.ZERO, np.where(flip, w.negate(value), value))

    def even(self, name: str, x: Words) -> Words:
        """A function without laws but f(-x) = f(x), with f(0) = 1."""
        value = self.opaque(name, np.where(_is_upper(x), w.negate(x), x))
        return np.where(w.equal(x, w.ZERO), w.ONE, value)

    def sine(self, x: Words) -> Words:
        """An odd function."""
        return self.odd("sine", x)

    def cosine(self, x: Words) -> Words:
        """An even function, 1 at 0."""
        return self.even("cosine", x)

    def power(self, x: Words, y: Words) -> Words:
        """x^y: a product where y is a multiple of 1/2 and not large, else without laws."""
        x, y = np.broadcast_arrays(x, y)
        result = np.array(self.opaque("power", x, y))
        exponents = self.kappa(y)
        for exponent in np.unique(exponents):
            twice = 2 * exponent
            if twice == np.floor(twice) and abs(twice) <= _LARGEST_POWER:
                at = exponents == exponent
                result[at] = w.power(x[at], int(twice))
        return result

    # -- size and order

    def kappa(self, x: Words) -> npt.NDArray[np.float64]:
        """The pseudo-real value of each word."""
        return kappa(x, self.seed, self.constants.known)

    def ranks(self, x: Words) -> tuple[npt.NDArray[np.int64], Words]:
        """Numbers in whose order the elements stand, and the words by these numbers."""
        return ranks(x, self.seed, self.constants.known)

    def less(self, a: Words, b: Words) -> Array:
        """Whether a comes before b; words of one pseudo-real value are told apart by their bits."""
        x, y = self.kappa(a), self.kappa(b)
        return np.asarray((x < y) | ((x == y) & (a < b)))

    def maximum(self, a: Words, b: Words) -> Words:
        """The larger; NaN wins."""
        return _with_nan(np.where(self.less(a, b), b, a), a, b)

    def minimum(self, a: Words, b: Words) -> Words:
        """The smaller; NaN wins."""
        return _with_nan(np.where(self.less(b, a), b, a), a, b)

    def absolute(self, x: Words) -> Words:
        """|x|."""
        return np.where(self.kappa(x) < 0, w.negate(x), x)

    def sign(self, x: Words) -> Words:
        """-1, 0 or 1; NaN stays."""
        sizes = self.kappa(x)
        return np.where(np.isnan(sizes), x, embedded(np.sign(np.nan_to_num(sizes))))

    def rounded(self, x: Words, function: np.ufunc) -> Words:
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


def sum_of(terms: Sequence[Words]) -> Words:
    """The sum of words."""
    total = terms[0]
    for term in terms[1:]:
        total = w.add(total, term)
    return total


def _is_upper(x: Words) -> Array:
    """One of x and -x, but not of both: whether the residue modulo P is in the upper half."""
    return np.asarray((x >> np.uint64(32)) > np.uint64(w.P // 2))


def _with_nan(chosen: Words, a: Words, b: Words) -> Words:
    return np.where((a == w.NAN) | (b == w.NAN), w.NAN, chosen)
