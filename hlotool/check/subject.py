"""A module under inspection, with what several rules need to know of it, computed once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.ranges import ForwardRanges
from hlotool.analysis.sizes import is_tiled
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import Users, users


@dataclass(eq=False)
class Subject:
    """A module under inspection.

    Attributes:
        module: to look at; it does not change meanwhile.
        gpu: that budgets of fusions are judged for; None where nobody says.
    """

    module: Module
    gpu: str | None = None

    @cached_property
    def is_for_tpu(self) -> bool:
        """Whether a compiler for TPUs wrote it, whose fusions follow rules of their own."""
        return is_tiled(self.module)

    @cached_property
    def calls(self) -> CallGraph:
        """Who calls whom, and where each instruction stands."""
        return CallGraph(self.module)

    @property
    def computations(self) -> list[Computation]:
        """What the entry reaches, callees before callers."""
        return self.calls.computations

    @property
    def instructions(self) -> Collection[Instruction]:
        """All instructions of those computations, in order."""
        return self.calls.home.keys()

    @cached_property
    def users(self) -> Users:
        """Who reads each instruction."""
        return {i: readers for c in self.computations for i, readers in users(c).items()}

    @cached_property
    def ranges(self) -> ForwardRanges:
        """What values each instruction is sure to have, whatever the parameters hold."""
        return ForwardRanges(self.calls.home)

    def clamped_dimension(self, instruction: Instruction) -> int | None:
        """The first dimension in which a dynamic slice or update starts out of range whatever the data."""
        sizes = _slice_sizes(instruction)
        if sizes is None:
            return None
        array, window, first = sizes
        for dimension, index in enumerate(instruction.operands[first:]):
            interval = self.ranges.of(index)
            if interval.low > array.dims[dimension] - window[dimension] or interval.high < 0:
                return dimension
        return None


def _slice_sizes(instruction: Instruction) -> tuple[ArrayShape, tuple[int, ...], int] | None:
    """The array, the sizes of the part, and which operand is the first start index."""
    if instruction.opcode not in ("dynamic-slice", "dynamic-update-slice"):
        return None
    first = 1 if instruction.opcode == "dynamic-slice" else 2
    array = instruction.operands[0].shape
    part = instruction.shape if first == 1 else instruction.operands[1].shape
    if not isinstance(array, ArrayShape) or not isinstance(part, ArrayShape):
        return None
    one_each = len(instruction.operands) - first == array.rank
    return (array, part.dims, first) if one_each else None
