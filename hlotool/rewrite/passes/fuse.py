"""Fusion formation: loops, reductions with the rest of their rows, several outputs of one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from hlotool.ir.edit import Names, computation_names, editing
from hlotool.ir.edit_programs import remove_dead_computations
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, TupleShape
from hlotool.ir.walk import Context as CallContext
from hlotool.ir.walk import contexts
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.fusion_facts import (
    Geometry,
    is_expensive,
    is_fusible,
    is_loop_fusible,
    is_loop_fusible_as_producer,
    is_reduction,
    loop_shape,
)
from hlotool.rewrite.passes.fusion_legality import (
    RULES,
    Part,
    budget_of_all_buffers,
    expensive_work_is_not_repeated,
    may_fuse,
    no_in_place_outputs,
)
from hlotool.rewrite.passes.loop_fusion import LoopFusion, is_multiplied
from hlotool.rewrite.passes.multi_output_fusion import Merging, MultiOutputFusion

#: Number of rows and their length.
Rows: TypeAlias = tuple[int, int]


# A kernel that has a row at hand can do all that. XLA: softmax_rewriter_triton.cc forms such kernels for
# GPUs.


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


_RULES = (*RULES, no_in_place_outputs, budget_of_all_buffers)

#: Elements of results that leave most of a GPU idle, so that one kernel for several takes no longer. XLA:
#: kShapeThreshold, horizontal_loop_fusion.cc.
_SMALL = 128 * 2048

#: How many small loops are looked back at for one that goes with another.
_NEIGHBOURS = 8

#: Functions that may be computed again for every element of a larger result. An H100 does 67e12 operations in
#: the time in which it moves 3.4e12 bytes, 80 for an f32; a division or a root takes 10 to 20 of them.
_AGAIN = 2


# XLA copies a cheap producer into each consumer and merges what then reads the same arrays
# (priority_fusion.cc, multi_output_fusion.cc); a kernel that computes and returns both values does the work
# once. Small loops that need nothing of each other share a kernel as well: XLA's horizontal_loop_fusion.cc.


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


#: What XLA has other means for.
_OUR_OWN: Mapping[str, type[RowFusion | JointFusion]] = {"rows": RowFusion, "joint": JointFusion}


# XLA: instruction_fusion.cc (producers into consumers, last consumers first), multi_output_fusion.cc.


@dataclass(frozen=True, slots=True)
class Fuse:
    """Form fusions, by the rules that XLA has for them.

    Attributes:
        kind: loops; reductions and scatters with what they read (input); several outputs; all of these;
            reductions with all that is computed along their rows; or what one loop can do jointly.
        target: on the CPU reductions are loops.
        max_instructions: no fusion becomes larger.
    """

    name: ClassVar[str] = "fuse"
    kind: Literal["all", "loop", "input", "multi-output", "rows", "joint"] = "all"
    target: Literal["gpu", "cpu"] = "gpu"
    max_instructions: int = 128

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        names, kinds = computation_names(module), contexts(module)
        for computation in list(module.computations):
            if kinds[computation] == {CallContext.CONTROL_FLOW}:
                self._fuse(module, computation, names, context)
        remove_dead_computations(module)

    def _fuse(self, module: Module, computation: Computation, names: Names, context: Context) -> None:
        if self.kind in _OUR_OWN:
            with editing(computation) as edit:
                _OUR_OWN[self.kind](module, edit, names, context, self.max_instructions).form()
            return
        with editing(computation) as edit:
            if self.kind != "multi-output":
                roots = {"loop", "input"} if self.kind == "all" else {self.kind}
                LoopFusion(module, edit, names, context, self.target, self.max_instructions).form(roots)
        if self.kind in ("all", "multi-output"):
            with editing(computation) as edit:
                MultiOutputFusion(module, edit, names, context, self.max_instructions).form()
