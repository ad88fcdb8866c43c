"""Index arithmetic in generated code: sums of variables and digits, simplified before anything is written.

An index that was split from a position and joined again is that position: no division is written for it. What
cannot be simplified becomes text in `Emitter.index`. Arrays lie in row-major order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TypeAlias

#: Bounds of what is not known.
UNKNOWN = 1 << 62


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the kernel, of type `Index`, or of type i64 where nothing is known of its size.

    Attributes:
        name: in the source.
        low: its least value.
        high: its largest one.
    """

    name: str
    low: int = -UNKNOWN
    high: int = UNKNOWN

    @property
    def is_known(self) -> bool:
        """Whether it has bounds."""
        return self.high < UNKNOWN


@dataclass(frozen=True)
class Digit:
    """`of / step % size` for `of` that is not negative where this is read.

    Attributes:
        of: a position.
        step: elements between neighbours.
        size: how many there are; None for the leading digit.
    """

    of: Expr
    step: int
    size: int | None

    low = 0

    @cached_property
    def high(self) -> int:
        """Its largest value."""
        most = self.of.high // self.step if self.of.high < UNKNOWN else UNKNOWN
        return most if self.size is None else min(most, self.size - 1)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.of, self.step, self.size))


Atom: TypeAlias = Variable | Digit


@dataclass(frozen=True)
class Expr:
    """A sum of atoms with factors; `str()` of it is a C++ expression of type i64.

    Attributes:
        terms: atoms, each once, in the order of descending factors, with their factors.
        offset: a constant.
    """

    terms: tuple[tuple[Atom, int], ...] = ()
    offset: int = 0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.offset))

    @cached_property
    def low(self) -> int:
        """A lower bound."""
        return _clipped(self.offset + sum(f * (a.low if f > 0 else a.high) for a, f in self.terms))

    @cached_property
    def high(self) -> int:
        """An upper bound."""
        return _clipped(self.offset + sum(f * (a.high if f > 0 else a.low) for a, f in self.terms))

    @cached_property
    def is_known(self) -> bool:
        """Whether all variables in it have bounds."""
        return all(a.is_known if isinstance(a, Variable) else a.of.is_known for a, _ in self.terms)

    @property
    def extent(self) -> int:
        """No partial sum of it is farther from zero."""
        return abs(self.offset) + sum(abs(f) * max(abs(a.low), abs(a.high)) for a, f in self.terms)

    def factor(self, variable: Variable) -> int:
        """The factor of a variable, as far as it stands outside of digits."""
        return next((factor for atom, factor in self.terms if atom == variable), 0)

    def digits(self) -> Iterator[Digit]:
        """All digits, those inside of others, too."""
        for atom, _ in self.terms:
            if isinstance(atom, Digit):
                yield atom
                yield from atom.of.digits()

    def variables(self) -> Iterator[Variable]:
        """All variables, those inside of digits, too."""
        for atom, _ in self.terms:
            if isinstance(atom, Digit):
                yield from atom.of.variables()
            else:
                yield atom

    def is_multiple(self, number: int) -> bool:
        """Whether `number` divides it, whatever the variables are."""
        return self.offset % number == 0 and all(factor % number == 0 for _, factor in self.terms)

    def __add__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return Expr(self.terms, self.offset + other)
        return summed((*self.terms, *other.terms), self.offset + other.offset)

    def __sub__(self, other: Expr | int) -> Expr:
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> Expr:
        return summed(((atom, f * factor) for atom, f in self.terms), self.offset * factor)

    def __str__(self) -> str:
        terms = [f"{_text(a)} * {f}ll" if f != 1 else _text(a) for a, f in self.terms]
        if self.offset or not terms:
            terms.append(f"{self.offset}ll")
        return "(" + " + ".join(terms) + ")"


#: One expression for each dimension.
Index: TypeAlias = "tuple[Expr, ...]"


def _clipped(bound: int) -> int:
    return max(-UNKNOWN, min(UNKNOWN, bound))


def _text(atom: Atom) -> str:
    if isinstance(atom, Variable):
        return f"(i64){atom.name}"
    quotient = f"divide<{atom.step}>({atom.of})" if atom.step != 1 else str(atom.of)
    return quotient if atom.size is None else f"modulo<{atom.size}>({quotient})"


def variable(name: str, size: int | None = None) -> Expr:
    """A variable from 0 to size - 1, or of any value."""
    if size == 1:
        return constant(0)
    return Expr(((Variable(name, 0, max(0, size - 1)) if size is not None else Variable(name), 1),))


def constant(value: int) -> Expr:
    """A number."""
    return Expr((), value)


def summed(terms: Iterable[tuple[Atom, int]], offset: int) -> Expr:
    """The sum, with neighbouring digits of one position joined."""
    factors: dict[Atom, int] = {}
    for atom, factor in terms:
        factors[atom] = factors.get(atom, 0) + factor
    while (pair := _neighbours(factors)) is not None:
        upper, lower = pair
        del factors[upper]
        factor = factors.pop(lower)
        joined = digit(lower.of, lower.step, None if upper.size is None else upper.size * (lower.size or 1))
        for atom, more in joined.terms:
            factors[atom] = factors.get(atom, 0) + more * factor
        offset += joined.offset * factor
    kept = [(atom, factor) for atom, factor in factors.items() if factor]
    return Expr(tuple(sorted(kept, key=_order)), offset)


def _order(term: tuple[Atom, int]) -> tuple[int, str]:
    atom, factor = term
    return -abs(factor), _text(atom)


def _neighbours(factors: dict[Atom, int]) -> tuple[Digit, Digit] | None:
    """Two digits that are one with the factors that they have."""
    found = [atom for atom in factors if isinstance(atom, Digit)]
    for lower in found:
        for upper in found:
            if (
                lower.size is not None
                and upper.of == lower.of
                and upper.step == lower.step * lower.size
                and factors[upper] == factors[lower] * lower.size
            ):
                return upper, lower
    return None


def digit(of: Expr, step: int, size: int | None) -> Expr:
    """`of / step % size`, simplified; `of` is not negative where this is read."""
    if size == 1 or (of.low >= 0 and of.high < step):
        return constant(0)
    if not of.terms:
        return constant(of.offset // step if size is None else of.offset // step % size)
    if size is not None and of.low >= 0 and of.high // step < size:
        size = None
    if size is not None:
        of = _without_multiples(of, step * size)
    of, step = _reduced(of, step)
    if step == 1:
        return of if size is None else _remainder(of, size)
    if (inner := _only_digit(of)) is not None and (inner.size is None or inner.size % step == 0):
        left = None if inner.size is None else inner.size // step
        sizes = [s for s in (left, size) if s is not None]
        if len(sizes) < 2 or left is None or size is None or left % size == 0 or size % left == 0:
            return digit(inner.of, inner.step * step, min(sizes, default=None))
    return Expr(((Digit(of, step, size), 1),))


def _only_digit(of: Expr) -> Digit | None:
    if len(of.terms) != 1 or of.offset or of.terms[0][1] != 1:
        return None
    atom = of.terms[0][0]
    return atom if isinstance(atom, Digit) else None


def _parted(of: Expr, divisor: int) -> tuple[Expr, Expr]:
    """What the divisor divides, and the rest."""
    whole = tuple(term for term in of.terms if term[1] % divisor == 0)
    rest = tuple(term for term in of.terms if term[1] % divisor)
    return Expr(whole, of.offset - of.offset % divisor), Expr(rest, of.offset % divisor)


def _without_multiples(of: Expr, modulus: int) -> Expr:
    """Without what does not change the remainder."""
    rest = _parted(of, modulus)[1]
    return rest if rest.low >= 0 else of


def _divided(of: Expr, divisor: int) -> Expr:
    return Expr(tuple((atom, factor // divisor) for atom, factor in of.terms), of.offset // divisor)


def _reduced(of: Expr, step: int) -> tuple[Expr, int]:
    """An equal quotient of smaller numbers."""
    for divisor in sorted({gcd(factor, step) for _, factor in of.terms}, reverse=True):
        whole, rest = _parted(of, divisor)
        if divisor > 1 and rest.low >= 0 and rest.high < divisor:
            return _divided(whole, divisor), step // divisor
    return of, step


def _remainder(of: Expr, size: int) -> Expr:
    """`of % size`."""
    if of.low >= 0 and of.high < size:
        return of
    for divisor in sorted({gcd(factor, size) for _, factor in of.terms}, reverse=True):
        whole, rest = _parted(of, divisor)
        if 1 < divisor < size and rest.terms and rest.low >= 0 and rest.high < divisor:
            return digit(_divided(whole, divisor), 1, size // divisor) * divisor + rest
    inner = _only_digit(of)
    if inner is not None and inner.size is not None and inner.size % size == 0:
        return digit(inner.of, inner.step, size)
    if inner is not None and inner.size is None:
        return Expr(((Digit(inner.of, inner.step, size), 1),))
    return Expr(((Digit(of, 1, size), 1),))


def strides(dims: Sequence[int]) -> list[int]:
    """Elements between neighbours along each dimension, row-major."""
    steps, step = [], 1
    for size in reversed(dims):
        steps.append(step)
        step *= size
    return steps[::-1]


def linear(index: Sequence[Expr], dims: Sequence[int]) -> Expr:
    """The position of an element in memory."""
    pairs = [(part, step) for part, size, step in zip(index, dims, strides(dims)) if size != 1]
    terms = ((atom, factor * step) for part, step in pairs for atom, factor in part.terms)
    return summed(terms, sum(part.offset * step for part, step in pairs))


def split(position: Expr, dims: Sequence[int]) -> Index:
    """The index of the element at a position."""
    parts = []
    for number, (size, step) in enumerate(zip(dims, strides(dims))):
        is_first = all(d == 1 for d in dims[:number])
        parts.append(constant(0) if size <= 1 else digit(position, max(1, step), None if is_first else size))
    return tuple(parts)
