"""Numbers of elements that stand in floating-point constants: the divisor of a mean, or its reciprocal.

Left as it is such a constant is the same on both sides, and harmless; but a mean over 7 elements that is
divided by 4096 is hardly a mean, and what is behind it (a variance beside its epsilon, a loss) would be of
other magnitudes. So it becomes the new number of elements, on both sides, where the evidence is complete:
its value is what some reduction sums up, all reductions that sum up as many do so over the same sizes, and
both programs have it, as number or as reciprocal. A power of two stays one: its reciprocal is exact, and
compilers count on that. Where only one program has such a constant, the sizes stay: it may have been
computed from them.
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
    constants: dict[Instruction, CountConstant] = {}
    for count, terms in summed.items():
        holding = [[(i, inverse) for i, n, inverse in side if n == count] for side in sides]
        if not any(holding):
            continue
        if not all(holding):
            lonely = next(found for found in holding if found)[0][0]
            for sizes in terms:
                known.sizes.freeze_all(
                    sizes, f"{place(lonely)}: may be their number, in one of the programs only"
                )
        elif len(terms) == 1:
            (sizes,) = terms
            constants.update((i, CountConstant(sizes, inverse)) for found in holding for i, inverse in found)
    return constants


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
