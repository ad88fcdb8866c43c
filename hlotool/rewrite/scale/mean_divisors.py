"""Numbers of elements that stand in floating-point constants: the divisor of a mean, or its reciprocal.

Left as it is such a constant is the same on both sides, and harmless; but a mean over 7 elements that is
divided by 4096 is hardly a mean, and what is behind it (a variance beside its epsilon, a loss, a gradient
that is normalised again) would be of other magnitudes. So it becomes the new number of elements, on both
sides, where the evidence is complete: its value is what some reduction sums up, all reductions that sum up
as many do so over the same sizes, both programs have it, and nothing is divided by it, in either, but sums
and what is summed up, or spread, over just these sizes: a width of heads also stands in frequencies.

Compilers fold it with other factors: `2 * (x / 768)` becomes `x * (1 / 384)`. A constant that one program has
alone, and that is the number of elements with a factor of the other program's, is such a product. It changes
with the number where what it multiplies is summed up, or spread, over these sizes; where it is not, that
is unknown, and all stay. They stay, too, where a constant of one program alone is no such product and scales
what is summed up over these sizes. A power of two stays one: its reciprocal is exact, and compilers count on
that. Where only one program has such a constant, the sizes stay: it may have been computed from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, prod
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
from msgspec import Struct

from hlotool.facts.recognition import uniform
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.rewrite.scale.quotients import Quotients, Term
from hlotool.rewrite.scale.sizes import Number, Relations, place
from hlotool.rewrite.scale.terms import Size

#: Fewer elements are numbers like any others: a half, an eighth. No value from 0 to 128 changes one of
#: three models (benchmarks/results/scaled.md, "Thresholds of smaller sizes").
_LEAST: Final = 16
#: Factors that come and go where a compiler simplifies, without being a constant of the program: `x + x`.
_SMALL: Final = np.array([1, 2, 3, 4, 1 / 2, 1 / 3, 1 / 4], np.float64)
_ONE: Final = np.ones(1, np.float64)


class CountConstant(Struct, frozen=True):
    """A constant that holds a number of elements.

    Attributes:
        sizes: whose product it is.
        inverse: it is one divided by that.
        factor: by which it is multiplied besides.
    """

    sizes: tuple[Size, ...]
    inverse: bool
    factor: float = 1.0

    def value(self, number: Number) -> float:
        """Its value when sizes are other numbers."""
        old, new = prod(size.value for size in self.sizes), prod(map(number, self.sizes))
        if old & (old - 1) == 0:
            new = 1 << max(1, round(np.log2(new)))
        return self.factor / new if self.inverse else self.factor * new


#: Roundings on the way from two constants and a number to one that a compiler made of them: two products, and
#: two of the three may be reciprocals. At 0 a constant in doubt would not be seen (likewise).
_ROUNDINGS: Final = 4
#: Numbers, in a row.
Floats: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"
#: What becomes of constants with one number of elements.
_Claim: TypeAlias = "dict[Instruction, CountConstant]"


class _Held(Struct, frozen=True):
    """A number that constants of floats hold, the same in all of their elements.

    Attributes:
        value: of the elements, without the sign.
        is_negative: whether they have one.
        kind: rounds a number to their type.
    """

    value: float
    is_negative: bool
    kind: type[np.generic[Any]]

    def of_count(self, count: int, factors: Floats) -> tuple[bool, float] | None:
        """Whether it is the reciprocal of a number of elements or that number, and which of `factors` times
        it; None where it is neither of them."""
        with np.errstate(all="ignore"):
            part = float(self.kind(1 / count))
            made = np.stack([factors * count, factors / count, factors * part]).astype(self.kind)
        matches = made == self.kind(self.value)
        if not matches.any():
            return None
        first = int(matches.any(axis=0).argmax())
        return not matches[0, first], float(factors[first])

    def is_near(self, numbers: Floats) -> bool:
        """Whether it is one of some numbers but for what a compiler rounded on the way."""
        epsilon = float(ml_dtypes.finfo(self.kind).eps)  # type: ignore[no-untyped-call]
        with np.errstate(all="ignore"):
            return bool(np.any(abs(numbers / self.value - 1) <= _ROUNDINGS * epsilon))

    @property
    def is_fine(self) -> bool:
        """Whether it is of a type in which products of any constants do not meet by chance."""
        return bool(np.dtype(self.kind).itemsize >= 4)


class _Side:
    """The constants of one program, and what they divide.

    Attributes:
        quotients: in the program.
        held: the constants of each number.
        values: the numbers, without signs.
    """

    def __init__(self, known: Relations, module: Module) -> None:
        self.quotients = Quotients(known, module)
        self.held: dict[_Held, list[Instruction]] = {}
        for instruction in module.instructions():
            if (found := _held(instruction)) is not None:
                self.held.setdefault(found, []).append(instruction)
        self.values = np.unique(np.array([one.value for one in self.held], np.float64))

    def has(self, one: _Held) -> bool:
        """Whether a number of another program, or its reciprocal, is one of this program, too."""
        with np.errstate(all="ignore"):
            reciprocals = (1 / self.values).astype(one.kind)
            reciprocal = float(one.kind(1 / one.value))
        same = np.isin(self.values, [one.value, reciprocal]) | (reciprocals == one.kind(one.value))
        return bool(same.any())

    def numbers(self) -> set[int]:
        """Whole numbers that are constants here, or of which reciprocals are."""
        found = {int(value) for value in self.values if float(value).is_integer()}
        for one in self.held:
            if one.value < 1 and one.of_count(count := round(1 / one.value), _ONE):
                found.add(count)
        return found


class _Evidence:
    """What programs that compute the same say of constants and numbers of elements."""

    def __init__(self, sides: Sequence[_Side], summed: Mapping[int, set[Term]]) -> None:
        """Compare the constants of programs.

        Args:
            sides: the programs.
            summed: what sums run over, by the number of elements.
        """
        self._sides, self._summed = sides, summed
        self._alone = [
            {held for held in side.held if not all(other.has(held) for other in sides if other is not side)}
            for side in sides
        ]
        self._factors = [self._factors_of(number) for number in range(len(sides))]

    def _factors_of(self, number: int) -> Floats:
        """What a compiler may multiply a number of elements by to get a constant of a program: constants of
        other ones, but not what a later one has alone, which is made of this program's."""
        found = {
            held.value
            for n, side in enumerate(self._sides)
            for held in side.held
            if n < number or (n > number and held not in self._alone[n])
        }
        values = np.array(sorted(found), np.float64)
        with np.errstate(all="ignore"):
            return np.concatenate([_SMALL, values, 1 / values])

    def claim(self, count: int) -> _Claim | None:
        """The constants that change with a number of elements that only sums over the same sizes have, some
        of them in each program; None where that is not known of all of them."""
        (term,) = self._summed[count]
        uses = [self._uses(number, count) for number in range(len(self._sides))]
        factors = {factor for found in uses for _, factor in found.values()}
        claim: _Claim = {}
        for number, found in enumerate(uses):
            before = len(claim)
            for held in self._alone[number] | found.keys():
                if held not in found and not factors.isdisjoint((held.value, 1 / held.value)):
                    continue  # It is what a constant of the other program has in it.
                changes = self._changes(number, held, found.get(held), count, factors <= {1.0})
                if held not in found and (changes is None or self._is_made_with(number, held, count)):
                    changes = False if self._is_made_without(number, held, uses) else None
                if changes is None:
                    return None
                if changes:
                    inverse, factor = found[held]
                    factor = -factor if held.is_negative else factor
                    sizes = tuple(size for size, times in term for _ in range(times))
                    constant = CountConstant(sizes, inverse, factor)
                    claim.update(dict.fromkeys(self._sides[number].held[held], constant))
            if len(claim) == before:
                return None
        return claim

    def _uses(self, number: int, count: int) -> dict[_Held, tuple[bool, float]]:
        """What in a program is a number of elements, or may be made of it: whether as its reciprocal, and
        times what."""
        found: dict[_Held, tuple[bool, float]] = {}
        for held in self._sides[number].held:
            factors = self._factors[number] if held in self._alone[number] else _SMALL
            if (use := held.of_count(count, factors)) is not None:
                found[held] = use
        return found

    def _changes(
        self, number: int, held: _Held, use: tuple[bool, float] | None, count: int, is_only: bool
    ) -> bool | None:
        """Whether the constants that hold a number follow a number of elements; None if unknown."""
        (term,) = self._summed[count]
        side, is_plain = self._sides[number], use is not None and use[1] == 1
        quotients = [one for constant in side.held[held] for one in side.quotients.of(constant)]
        if not quotients:
            return False
        over = [frozenset[Term]() if one is None else side.quotients.terms(one) for one in quotients]
        belongs = [term in terms for terms in over]
        if is_plain and is_only:
            # No constant can be made of it with a factor, or it of another one: any sum is evidence enough.
            belongs = [
                own or (one is not None and side.quotients.is_of_sum(one))
                for own, one in zip(belongs, quotients)
            ]
        if is_plain:
            return True if all(belongs) else None
        if held not in self._alone[number] or use is None:
            # Both programs have it, or it is nothing that could be made of the number.
            return None if any(belongs) else False
        if all(belongs):
            # In the reference, which folds nothing, it is a constant like any other that happens to be alike.
            return True if number > 0 or use[1] in _SMALL else None
        return None if any(belongs) or not self._is_of_another(number, held, over, count) else False

    def _is_made_with(self, number: int, held: _Held, count: int) -> bool:
        """Whether a number of a later program may be made of two constants of others and one of elements."""
        if number == 0 or held not in self._alone[number]:
            return False
        factors = self._factors[number]
        with np.errstate(all="ignore"):
            return any(held.is_near(_products(factors, part)) for part in (factors * count, factors / count))

    def _is_made_without(
        self, number: int, held: _Held, uses: Sequence[Mapping[_Held, tuple[bool, float]]]
    ) -> bool:
        """Whether a number is made of two constants of other programs, neither of which follows."""
        following = {one.value for found in uses for one in found}
        following |= {1 / value for value in following}
        factors = self._factors[number]
        others = factors[~np.isin(factors, [*following])]
        return held.is_fine and held.is_near(_products(others, others))

    def _is_of_another(self, number: int, held: _Held, over: Sequence[frozenset[Term]], count: int) -> bool:
        """Whether a number may be made of another one, over whose sizes all that it divides is summed up."""
        rivals = {
            term
            for other, terms in self._summed.items()
            if other != count and held.of_count(other, self._factors[number]) is not None
            for term in terms
        }
        return all(not rivals.isdisjoint(one) for one in over)


def _products(factors: Floats, others: Floats) -> Floats:
    """Of each of some numbers and each of others."""
    with np.errstate(all="ignore"):
        return np.outer(factors, others).ravel()


def relate_means(known: Relations, modules: Sequence[Module]) -> dict[Instruction, CountConstant]:
    """Find the constants that hold numbers of elements, and freeze what is in doubt."""
    sides = [_Side(known, module) for module in modules]
    summed: dict[int, set[Term]] = {}
    for side in sides:
        for term in side.quotients.summed():
            if (count := _product(term)) >= _LEAST:
                summed.setdefault(count, set()).add(term)
    evidence = _Evidence(sides, summed)
    claims: dict[int, _Claim] = {}
    folded: set[int] = set()
    for count, terms in summed.items():
        plain = [[*_plain(side, count)] for side in sides]
        if not any(plain):
            continue
        claim = evidence.claim(count) if len(terms) == 1 else None
        if claim is not None:
            claims[count] = claim
        elif not all(plain):
            relatives = {count * 2**n for n in (1, 2)} | {count // 2**n for n in (1, 2) if count % 2**n == 0}
            if all(found or not relatives.isdisjoint(side.numbers()) for found, side in zip(plain, sides)):
                # A compiler made it of another constant, such as 2 / n, and of which is not known.
                folded.update(relatives)
                continue
            lonely = next(found for found in plain if found)[0]
            for term in terms:
                known.sizes.freeze_all(
                    [size for size, _ in term],
                    f"{place(lonely)}: may be their number, in one of the programs only",
                )
    return _undisputed([claim for count, claim in claims.items() if count not in folded])


def _undisputed(claims: Sequence[_Claim]) -> _Claim:
    """All claims but those to the same constant, which stay with all others that were claimed beside it."""
    claimed = Counter(constant for claim in claims for constant in claim)
    clear = [claim for claim in claims if all(claimed[constant] == 1 for constant in claim)]
    return {constant: held for claim in clear for constant, held in claim.items()}


def _plain(side: _Side, count: int) -> Iterator[Instruction]:
    """Constants that are a number of elements, or its reciprocal, as they are."""
    for held, constants in side.held.items():
        if not held.is_negative and held.of_count(count, _ONE) is not None:
            yield from constants


def _held(instruction: Instruction) -> _Held | None:
    """What a constant of floats is, where all its elements are the same finite number but 0."""
    shape = instruction.shape
    if instruction.opcode != "constant" or not isinstance(shape, ArrayShape):
        return None
    if not shape.element_type.is_floating or (found := uniform(instruction)) is None:
        return None
    value = float(found)
    return _Held(abs(value), value < 0, type(found)) if value and isfinite(value) else None


def _product(term: Term) -> int:
    return prod(size.value**times for size, times in term)
