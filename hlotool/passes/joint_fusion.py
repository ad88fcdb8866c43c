"""Loops over equally many elements in one kernel, one computing from what the other has just computed.

XLA copies a cheap producer into each consumer and merges what then reads the same arrays
(priority_fusion.cc, multi_output_fusion.cc); a kernel that computes and returns both values does the work
once. Small loops that need nothing of each other share a kernel as well: XLA's horizontal_loop_fusion.cc.
"""

from __future__ import annotations

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.passes.fusion_facts import is_loop_fusible_as_producer, is_reduction
from hlotool.passes.fusion_legality import (
    RULES,
    Part,
    budget_of_all_buffers,
    expensive_work_is_not_repeated,
    may_fuse,
    no_in_place_outputs,
)
from hlotool.passes.multi_output_fusion import MultiOutputFusion

_RULES = (*RULES, no_in_place_outputs, expensive_work_is_not_repeated, budget_of_all_buffers)

#: Elements of results that leave most of a GPU idle, so that one kernel for several takes no longer. XLA:
#: kShapeThreshold, horizontal_loop_fusion.cc.
_SMALL = 128 * 2048

#: How many small loops are looked back at for one that goes with another.
_NEIGHBOURS = 8


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
        sizes = self._sizes(producer)
        if len(sizes) != 1:
            return None
        consumers = list(self.consumers(producer))
        for consumer in consumers:
            others = [other for other in consumers if other is not consumer]
            if self._sizes(consumer) != sizes or any(self.ancestors.leads(o, consumer) for o in others):
                continue
            if max(sizes) > _SMALL and (_transposes(producer) or _transposes(consumer)):
                continue
            if self._goes_with(producer, consumer) and self.context.spend("producer and consumer"):
                return self.merge(producer, consumer)
        return None

    def _merge_small(self) -> None:
        open_ones: list[Instruction] = []
        for loop in list(self.edit):
            sizes = self._sizes(loop) if loop in self.edit else set()
            if not sizes or max(sizes) > _SMALL:
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
        return bool(may_fuse(*parts, self._setting(), _RULES))

    def _sizes(self, instruction: Instruction) -> set[int]:
        """Numbers of elements of its results; none of what is no loop."""
        part = Part.of(instruction)
        is_loop = self._is_eligible(instruction) and instruction.attributes.get("kind") != "kInput"
        if not is_loop or not all(_is_of_loop(member) for member in part.members):
            return set()
        shapes = [root.shape for root in part.roots]
        return {s.size for s in shapes if isinstance(s, ArrayShape)}


def _transposes(instruction: Instruction) -> bool:
    """Whether it wants a kernel that is laid out for it alone: tiles, so that memory is read in order."""
    return any(member.opcode == "transpose" for member in Part.of(instruction).members)


def _is_of_loop(member: Instruction) -> bool:
    """Whether a loop computes it where it is read, in a few steps."""
    return (
        is_loop_fusible_as_producer(member) and not is_reduction(member) and member.opcode != "reduce-window"
    )
