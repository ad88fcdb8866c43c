"""Several outputs of one kernel: a producer with its consumer, and siblings that read the same arrays."""

from __future__ import annotations

from hlotool.ir.module import Instruction
from hlotool.passes.fusion_facts import TRIVIAL, is_fusible, is_loop_fusible, loop_shape
from hlotool.passes.fusion_legality import (
    MULTI_OUTPUT_RULES,
    FusionDecision,
    Part,
    Setting,
    forbid,
    may_fuse,
    producer_is_loop_fusible,
)
from hlotool.passes.fusion_merging import Merging


class MultiOutputFusion(Merging):
    """Merges the fusions and loops of one computation."""

    def form(self) -> None:
        """Merge what reads the same arrays, then producers with consumers."""
        for shared in list(self.edit):
            if shared in self.edit:
                self._merge_siblings(shared)
        for producer in reversed(list(self.edit)):
            if producer in self.edit and self._is_eligible(producer):
                self._merge_with_consumer(producer)

    def _merge_siblings(self, shared: Instruction) -> None:
        users = [u for u in self.edit.users(shared) if self._is_eligible(u)]
        if not loop_shape(shared):
            return
        while users:
            first, rest = users[0], users[1:]
            users = rest
            for other in rest:
                if self.may_merge(first, other) and self.context.spend("siblings"):
                    users = [u for u in rest if u is not other]
                    users.insert(0, self.merge(first, other))
                    break

    def _merge_with_consumer(self, producer: Instruction) -> None:
        for consumer in self.edit.users(producer):
            if not self._is_eligible(consumer) or not self.may_join(producer, consumer):
                continue
            if self.context.spend("producer and consumer"):
                self.merge(producer, consumer)
                return

    def may_merge(self, first: Instruction, second: Instruction) -> FusionDecision:
        """Whether two siblings may become one kernel."""
        if self.ancestors.leads(first, second) or self.ancestors.leads(second, first):
            return forbid(f"{first.name} and {second.name} are connected")
        return self._rules(first, second)

    def may_join(self, producer: Instruction, consumer: Instruction) -> FusionDecision:
        """Whether a producer that others read, too, may become another output of its consumer."""
        setting = self._setting()
        decision = producer_is_loop_fusible(Part.of(producer), Part.of(consumer), setting)
        if not decision:
            return decision
        others = [u for u in self.edit.users(producer) if u is not consumer]
        if any(self.ancestors.leads(other, consumer) for other in others):
            return forbid("multi-output fusion creates a cycle")
        return self._rules(producer, consumer)

    def _rules(self, first: Instruction, second: Instruction) -> FusionDecision:
        parts = Part.of(first), Part.of(second)
        if sum(len(p.members) for p in parts) > self.max_instructions:
            return forbid("will generate too large IR")
        return may_fuse(*parts, self._setting(), MULTI_OUTPUT_RULES)

    def _setting(self) -> Setting:
        return Setting(self.edit.users, self.edit.computation.root, self.edit.successors)

    def _is_eligible(self, instruction: Instruction) -> bool:
        """A loop, a reduction, or a fusion of them, whose results are read one by one."""
        if instruction is self.edit.computation.root or instruction.control_predecessors:
            return False
        if not self.edit.users(instruction):
            return False
        if instruction.opcode == "fusion":
            part = Part.of(instruction)
            kind = instruction.attributes.get("kind")
            single = not part.is_multi_output and part.roots[0].shape == instruction.shape
            users = self.edit.users(instruction)
            return kind in ("kLoop", "kInput") and (
                single or all(u.opcode == "get-tuple-element" for u in users)
            )
        loop = is_loop_fusible(instruction) or instruction.opcode == "reduce"
        return loop and instruction.opcode not in TRIVIAL and is_fusible(instruction)
