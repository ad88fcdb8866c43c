"""Numbers of elements that stand in floating-point constants: the divisor of a mean, or its reciprocal.

Left as it is such a constant is the same on both sides, and harmless; but a mean over 7 elements that is
divided by 4096 is hardly a mean, and what is behind it (a variance beside its epsilon, a loss) would be of
other magnitudes. So it becomes the new number of elements, on both sides, where the evidence is complete:
its value is what some reduction sums up, all reductions that sum up as many do so over the same sizes,
both programs have it, as number or as reciprocal, and nothing but sums is divided by it, in either: a width
of heads also stands in frequencies, where compilers fold it with other factors. A power of two stays one: its
reciprocal is exact, and compilers count on that. Where only one program has such a constant, the sizes stay:
it may have been computed from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from hlotool.analysis.constants import uniform
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import CallSite, call_sites, users
from hlotool.scale.rules.base import Number, Relations, place
from hlotool.scale.sizes import Size

#: Fewer elements are numbers like any others: a half, an eighth.
_LEAST: Final = 16


@dataclass(frozen=True, slots=True)
class CountConstant:
    """A constant that holds a number of elements.

    Attributes:
        sizes: whose product it is.
        inverse: it is one divided by that.
    """

    sizes: tuple[Size, ...]
    inverse: bool

    def value(self, number: Number) -> float:
        """Its value when sizes are other numbers."""
        old, new = prod(size.value for size in self.sizes), prod(map(number, self.sizes))
        if old & (old - 1) == 0:
            new = 1 << max(1, round(np.log2(new)))
        return 1 / new if self.inverse else new


def relate_means(known: Relations, modules: Sequence[Module]) -> dict[Instruction, CountConstant]:
    """Find the constants that hold numbers of elements, and freeze what is in doubt."""
    summed: dict[int, set[tuple[Size, ...]]] = {}
    for module in modules:
        for sizes in _reductions(known, module):
            summed.setdefault(prod(size.value for size in sizes), set()).add(sizes)
    sides = [list(_counts(module, summed)) for module in modules]
    flows = [_Flow(module) for module in modules]
    numbers = [set(_numbers(module)) for module in modules]
    constants: dict[Instruction, CountConstant] = {}
    folded: set[int] = set()
    for count, terms in summed.items():
        holding = [[(i, inverse) for i, n, inverse in side if n == count] for side in sides]
        if not any(holding):
            continue
        if not all(holding):
            relatives = [count * 2**n for n in (1, 2)] + [count // 2**n for n in (1, 2) if count % 2**n == 0]
            if all(found or not side.isdisjoint(relatives) for found, side in zip(holding, numbers)):
                # A compiler made it of another constant, such as 2 / n of the gradient of a mean of squares.
                folded.update(relatives)
                continue
            lonely = next(found for found in holding if found)[0][0]
            for sizes in terms:
                known.sizes.freeze_all(
                    sizes, f"{place(lonely)}: may be their number, in one of the programs only"
                )
        elif len(terms) == 1 and all(
            flows[n].divides_a_sum(i) for n, found in enumerate(holding) for i, _ in found
        ):
            (sizes,) = terms
            constants.update((i, CountConstant(sizes, inverse)) for found in holding for i, inverse in found)
    return {i: one for i, one in constants.items() if prod(size.value for size in one.sizes) not in folded}


def _numbers(module: Module) -> Iterator[int]:
    """Whole numbers that constants of floats are, or of which they are reciprocals."""
    for instruction in module.instructions():
        shape = instruction.shape
        if instruction.opcode != "constant" or not isinstance(shape, ArrayShape):
            continue
        if not shape.element_type.is_floating or (found := uniform(instruction)) is None:
            continue
        value = float(found)
        if value.is_integer():
            yield int(value)
        elif 0 < value < 1:
            count = round(1 / value)
            if float(found.dtype.type(1 / count)) == value:
                yield count


def _reductions(known: Relations, module: Module) -> Iterator[tuple[Size, ...]]:
    """What sums of floats run over: sizes that may change, one of them at least."""
    for instruction in module.instructions():
        if instruction.opcode != "reduce" or not instruction.operands[0].element_type.is_inexact:
            continue
        dims = known.of(instruction.operands[0])
        sizes = [known.sizes.root(dims[d]) for d in instruction.integers("dimensions")]
        found = tuple(sorted((size for size in sizes if size.value > 1), key=id))
        if prod(size.value for size in found) >= _LEAST:
            yield found


def _counts(
    module: Module, wanted: dict[int, set[tuple[Size, ...]]]
) -> Iterator[tuple[Instruction, int, bool]]:
    """Constants of floats that are one of the wanted numbers, or its reciprocal as their type rounds it."""
    for instruction in module.instructions():
        shape = instruction.shape
        if instruction.opcode != "constant" or not isinstance(shape, ArrayShape):
            continue
        if not shape.element_type.is_floating or (found := uniform(instruction)) is None:
            continue
        value = float(found)
        if value.is_integer() and int(value) in wanted:
            yield instruction, int(value), False
        elif 0 < value < 1 / (_LEAST - 1):
            count = round(1 / value)
            if count in wanted and float(found.dtype.type(1 / count)) == value:
                yield instruction, count, True


#: What leaves every element as it is, or makes more of it.
_SAME_VALUES = frozenset({"bitcast", "broadcast", "convert", "copy", "reshape", "transpose"})
#: Values are not followed further than this.
_FURTHEST: Final = 24


class _Flow:
    """Where values come from and go to in one program."""

    def __init__(self, module: Module) -> None:
        sites = call_sites(module)
        self._sites: dict[Instruction, list[CallSite]] = {
            parameter: sites[computation]
            for computation in module.computations
            for parameter in computation.parameters
        }
        self._users: dict[Instruction, list[Instruction]] = {}
        for computation in module.computations:
            self._users.update(users(computation))

    def divides_a_sum(self, constant: Instruction) -> bool:
        """Whether all that is made of a constant is a quotient, or a product, of a sum and it."""
        pending, seen = [constant], {constant}
        while pending:
            value = pending.pop()
            for user in self._users[value]:
                if user.opcode in _SAME_VALUES and user not in seen:
                    seen.add(user)
                    pending.append(user)
                elif user.opcode in ("divide", "multiply"):
                    others = [operand for operand in user.operands if operand is not value]
                    if len(others) != 1 or (user.opcode == "divide" and user.operands[1] is not value):
                        return False
                    if not self._is_sum(others[0], 0):
                        return False
                elif user not in seen:
                    return False
        return len(self._users[constant]) > 0

    def _is_sum(self, value: Instruction, depth: int) -> bool:
        if depth > _FURTHEST:
            return False
        if value.opcode in ("reduce", "all-reduce"):
            return True
        if value.opcode in _SAME_VALUES:
            return self._is_sum(value.operands[0], depth + 1)
        if value.opcode in ("fusion", "call"):
            return all(self._is_sum(called.root, depth + 1) for called in value.called)
        if value.opcode == "parameter" and value.parameter_number is not None:
            number = value.parameter_number
            sites = self._sites_of(value)
            return bool(sites) and all(
                number < len(site.operands) and self._is_sum(site.operands[number], depth + 1)
                for site in sites
            )
        return False

    def _sites_of(self, parameter: Instruction) -> list[Instruction]:
        """The fusions and calls that pass something for a parameter; none where others call its
        computation."""
        found = [site.instruction for site in self._sites.get(parameter, [])]
        return found if all(one.opcode in ("fusion", "call") for one in found) else []
