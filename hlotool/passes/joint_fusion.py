"""Loops over equally many elements in one kernel, one computing from what the other has just computed.

XLA copies a cheap producer into each consumer and merges what then reads the same arrays
(priority_fusion.cc, multi_output_fusion.cc); a kernel that computes and returns both values does the work
once. Small loops that need nothing of each other share a kernel as well: XLA's horizontal_loop_fusion.cc.
"""

from __future__ import annotations

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, TupleShape
from hlotool.passes.fusion_emissions import is_multiplied
from hlotool.passes.fusion_facts import (
    is_expensive,
    is_loop_fusible_as_producer,
    is_reduction,
    loop_shape,
)
from hlotool.passes.fusion_legality import (
    RULES,
    Part,
    budget_of_all_buffers,
    expensive_work_is_not_repeated,
    may_fuse,
    no_in_place_outputs,
)
from hlotool.passes.multi_output_fusion import MultiOutputFusion
from hlotool.passes.reduction_geometry import Geometry

_RULES = (*RULES, no_in_place_outputs, budget_of_all_buffers)

#: Elements of results that leave most of a GPU idle, so that one kernel for several takes no longer. XLA:
#: kShapeThreshold, horizontal_loop_fusion.cc.
_SMALL = 128 * 2048

#: How many small loops are looked back at for one that goes with another.
_NEIGHBOURS = 8

#: Functions that may be computed again for every element of a larger result. An H100 does 67e12 operations in
#: the time in which it moves 3.4e12 bytes, 80 for an f32; a division or a root takes 10 to 20 of them.
_AGAIN = 2


class JointFusion(MultiOutputFusion):
    """Merges the loops of one computation."""

    def form(self) -> None:
        """Merge producers with consumers as often as that is possible, then what is small."""
        for start in list(self.edit):
            producer: Instruction | None = start
            while producer is not None and producer in self.edit:
                producer = self._join(producer)
        self._merge_small()

    def _join(self, producer: Instruction) -> Instruction | None:
        """A producer and one that reads it; the results of reductions, and what is computed from each."""
        size = self._loop_size(producer) or self._reduced_size(producer)
        consumers = list(self.consumers(producer)) if size else []
        for consumer in consumers:
            others = [other for other in consumers if other is not consumer]
            if any(self.ancestors.leads(other, consumer) for other in others):
                continue
            if consumer is self.edit.computation.root and others:
                continue
            is_one_loop = self._loop_size(consumer) == size
            if not is_one_loop and (others or not self._may_be_repeated(producer, consumer)):
                continue
            outputs = [producer, *self.edit.users(producer)]
            if is_multiplied(Part.of(producer), Part.of(consumer), outputs):
                continue
            if self._goes_with(producer, consumer) and self.context.spend("producer and consumer"):
                return self.merge(producer, consumer)
        return None

    def _may_be_repeated(self, producer: Instruction, consumer: Instruction) -> bool:
        """Whether a consumer of another size may compute what it reads each time that it does."""
        members = Part.of(producer).members
        is_light = sum(map(is_expensive, members)) <= _AGAIN and not any(
            m.opcode == "reduce" for m in members
        )
        return is_light and bool(self._loop_size(producer)) and bool(self._loop_size(consumer))

    def _merge_small(self) -> None:
        open_ones: list[Instruction] = []
        for loop in [i for i in self.edit if i is not self.edit.computation.root]:
            size = self._loop_size(loop, several=True) if loop in self.edit else 0
            if not 0 < size <= _SMALL:
                continue
            for other in open_ones:
                apart = not (self.ancestors.leads(other, loop) or self.ancestors.leads(loop, other))
                if apart and self._goes_with(other, loop) and self.context.spend("small loops"):
                    open_ones.remove(other)
                    loop = self.merge(other, loop)
                    break
            open_ones = [loop, *open_ones[: _NEIGHBOURS - 1]]

    def _goes_with(self, first: Instruction, second: Instruction) -> bool:
        parts = Part.of(first), Part.of(second)
        if sum(len(part.members) for part in parts) > self.max_instructions:
            return False
        roots = [root for part in parts for root in part.roots]
        if max(_size(root) for root in roots) > _SMALL and any(map(_transposes, parts)):
            return False
        is_repeated = not expensive_work_is_not_repeated(*parts, self._setting())
        if is_repeated and {_size(r) for r in parts[0].roots} == {_size(r) for r in parts[1].roots}:
            return False
        return bool(may_fuse(*parts, self._setting(), _RULES))

    def _loop_size(self, instruction: Instruction, several: bool = False) -> int:
        """Number of elements of each result, or of the largest of several; 0 of what is no loop."""
        part = Part.of(instruction)
        is_root = instruction is self.edit.computation.root and not instruction.control_predecessors
        if not is_root and not self._is_eligible(instruction):
            return 0
        if (isinstance(instruction.shape, TupleShape) and is_root) or not all(map(_is_of_loop, part.members)):
            return 0
        sizes = {_size(root) for root in part.roots}
        return max(sizes) if several or len(sizes) == 1 else 0

    def _reduced_size(self, instruction: Instruction) -> int:
        """Number of results of each reduction, where there are alike ones and no other results; else 0."""
        part = Part.of(instruction)
        if not self._is_eligible(instruction):
            return 0
        long = [member for member in part.members if _is_long(member)]
        loops = all(_is_of_loop(member) for member in part.members if member not in long)
        shapes = {(loop_shape(r), r.integers("dimensions"), _size(r)) for r in long}
        sizes = {_size(root) for root in part.roots}
        return sizes.pop() if loops and len(shapes) == 1 and sizes == {next(iter(shapes))[2]} else 0


def _size(instruction: Instruction) -> int:
    """Elements of an array; 0 of what is none, or has no fixed size."""
    shape = instruction.shape
    return shape.size if isinstance(shape, ArrayShape) and not shape.is_dynamic else 0


def _transposes(part: Part) -> bool:
    """Whether it wants a kernel that is laid out for it alone: tiles, so that memory is read in order."""
    return any(member.opcode == "transpose" for member in part.members)


def _is_of_loop(member: Instruction) -> bool:
    """Whether a loop computes it where it is read, in a few steps."""
    is_short = not _is_long(member) and member.opcode != "reduce-window"
    return is_short and is_loop_fusible_as_producer(member)


def _is_long(member: Instruction) -> bool:
    """Whether it is a reduction that threads share."""
    if not is_reduction(member):
        return False
    shape = member.operands[0].shape
    is_known = isinstance(shape, ArrayShape) and not shape.is_dynamic
    return not is_known or not Geometry(loop_shape(member), member.integers("dimensions")).is_serial
