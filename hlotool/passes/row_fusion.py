"""Reductions of rows with what is computed along the same rows from their results, as in a softmax.

A kernel that has a row at hand can do all that. XLA: softmax_rewriter_triton.cc forms such kernels for GPUs.
"""

from __future__ import annotations

from typing import TypeAlias

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.passes.fusion_facts import is_fusible, is_loop_fusible, is_reduction
from hlotool.passes.fusion_legality import Part
from hlotool.passes.fusion_merging import Merging
from hlotool.passes.reduction_geometry import Geometry

#: Number of rows and their length.
Rows: TypeAlias = tuple[int, int]


class RowFusion(Merging):
    """Merges the fusions of one computation."""

    def form(self) -> None:
        """Merge each reduction of rows with what reads its results, as often as that is possible."""
        for start in list(self.edit):
            producer: Instruction | None = start
            while producer is not None and producer in self.edit:
                producer = self._merge_with_consumer(producer)

    def _merge_with_consumer(self, producer: Instruction) -> Instruction | None:
        rows = rows_of(producer) if self._is_eligible(producer) else None
        if rows is None or not _fits(producer, rows):
            return None
        consumers = list(self.consumers(producer))
        for consumer in consumers:
            if not self._goes_with(consumer, rows) or self._size(producer, consumer) > self.max_instructions:
                continue
            others = [other for other in consumers if other is not consumer]
            if any(self.ancestors.leads(other, consumer) for other in others):
                continue
            if self.context.spend("rows"):
                return self.merge(producer, consumer)
        return None

    def _goes_with(self, consumer: Instruction, rows: Rows) -> bool:
        has_reductions = bool(_reductions(consumer))
        if not self._is_eligible(consumer) or not _fits(consumer, rows):
            return False
        return not has_reductions or rows_of(consumer) == rows

    def _is_eligible(self, instruction: Instruction) -> bool:
        """Whether it can be part of such a kernel, and its results are read one by one."""
        if instruction.control_predecessors or self.edit.successors(instruction):
            return False
        users = self.edit.users(instruction)
        if instruction.opcode == "fusion":
            single = not Part.of(instruction).is_multi_output
            is_apart = bool(users) and all(u.opcode == "get-tuple-element" for u in users)
            is_root = instruction is self.edit.computation.root
            has_kind = instruction.attributes.get("kind") in ("kLoop", "kInput")
            return has_kind and (single or (is_apart and not is_root))
        is_reduction = instruction.opcode == "reduce" and isinstance(instruction.shape, ArrayShape)
        return (is_reduction or is_loop_fusible(instruction)) and is_fusible(instruction)

    def _size(self, *parts: Instruction) -> int:
        return sum(len(Part.of(part).members) for part in parts)


def _reductions(instruction: Instruction) -> list[Instruction]:
    return [member for member in Part.of(instruction).members if is_reduction(member)]


def rows_of(instruction: Instruction) -> Rows | None:
    """What all reductions of an instruction or fusion reduce; None if that differs, or one kernel cannot."""
    shapes = [_geometry(reduction) for reduction in _reductions(instruction)]
    found = {(s.results, s.length) if s is not None and s.has_whole_rows else None for s in shapes}
    first = shapes[0] if len(found) == 1 else None
    is_left_alone = first is None or first.is_serial or first.has_few_long_rows
    return None if is_left_alone else found.pop()


def _geometry(reduction: Instruction) -> Geometry | None:
    """None if what it reduces has no fixed size."""
    shape = reduction.operands[0].shape
    if not isinstance(shape, ArrayShape) or shape.is_dynamic:
        return None
    return Geometry(shape.dims, tuple(sorted(reduction.integers("dimensions"))))


def _fits(instruction: Instruction, rows: Rows) -> bool:
    """Whether all that leaves it are results of rows, or elements of them."""
    shapes = [root.shape for root in Part.of(instruction).roots]
    sizes = (rows[0], rows[0] * rows[1])
    return all(isinstance(s, ArrayShape) and not s.is_dynamic and s.size in sizes for s in shapes)
