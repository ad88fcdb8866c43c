"""Two fusions made into one, and several outputs of one kernel: a producer with its consumer, siblings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlotool.ir.edit import Editor, Names, copied
from hlotool.ir.edit_calls import copy_body, outline
from hlotool.ir.module import Instruction, Module
from hlotool.ir.walk import predecessors
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.fusion_facts import (
    TRIVIAL,
    is_fusible,
    is_loop_fusible,
    is_scalar_constant,
    loop_shape,
)
from hlotool.rewrite.passes.fusion_legality import (
    MULTI_OUTPUT_RULES,
    FusionDecision,
    Part,
    Setting,
    forbid,
    may_fuse,
    producer_is_loop_fusible,
)


@dataclass(slots=True)
class Merging:
    """What makes larger fusions of those of one computation, and keeps account of what needs what.

    Attributes:
        module: that the computation is part of.
        edit: of the computation.
        names: of the module's computations.
        context: of the pass.
        max_instructions: no fusion becomes larger.
        ancestors: of the instructions of the computation.
    """

    module: Module
    edit: Editor
    names: Names
    context: Context
    max_instructions: int
    ancestors: Ancestors = field(init=False)

    def __post_init__(self) -> None:
        self.ancestors = Ancestors(self.edit)

    def merge(self, first: Instruction, second: Instruction) -> Instruction:
        """One fusion of both; neither may need the other through a third."""
        kinds = {i.attributes.get("kind") for i in (first, second)}
        has_reduction = any(Part.of(i).reductions for i in (first, second))
        members = [*self._members(first), *self._members(second)]
        kind = "kInput" if "kInput" in kinds or has_reduction else "kLoop"
        fusion = outline(
            self.module,
            self.edit,
            members,
            "fusion",
            {"kind": kind},
            name="multi_output_fusion",
            body_name="fused_multi_output",
            names=self.names,
        )
        several = Part.of(fusion).is_multi_output
        self.ancestors.merge(first, second, [fusion, *(self.edit.users(fusion) if several else ())])
        return fusion

    def consumers(self, producer: Instruction) -> Iterator[Instruction]:
        """Who reads its results, each once."""
        readers = dict.fromkeys(self.edit.users(producer))
        if not Part.of(producer).is_multi_output:
            yield from readers
            return
        yield from dict.fromkeys(user for part in readers for user in self.edit.users(part))

    def _scalars(self, instruction: Instruction) -> list[Instruction]:
        """Constants of one element that it reads, as copies of its own."""
        copies: dict[Instruction, Instruction] = {}
        for operand in instruction.operands:
            if is_scalar_constant(operand) and operand not in copies:
                copies[operand] = self.edit.add(copied(operand), before=instruction)
        self.edit.set_operands(instruction, (copies.get(o, o) for o in instruction.operands))
        for original in copies:
            self.edit.remove_unused(original)
        return list(copies.values())

    def _members(self, instruction: Instruction) -> list[Instruction]:
        """What a fusion is made of, in its place; or the instruction itself."""
        if instruction.opcode != "fusion":
            return [*self._scalars(instruction), instruction]
        (body,) = instruction.called
        root, copies = copy_body(self.module, self.edit, body, instruction.operands, instruction, self.names)
        if Part.of(instruction).is_multi_output:
            for part in self.edit.users(instruction):
                self.edit.replace_uses(part, root.operands[part.integer("index")])
                self.edit.remove(part)
            copies.remove(root)
            self.edit.remove(instruction)
            self.edit.remove(root)
        else:
            self.edit.replace_uses(instruction, root)
            self.edit.remove(instruction)
        return copies


class Ancestors:
    """What each instruction needs, as a row of bits, while instructions are merged. XLA: hlo_reachability.cc.

    Args:
        instructions: of a computation, operands first.
    """

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        listed = list(instructions)
        self._numbers = {instruction: n for n, instruction in enumerate(listed)}
        self._rows = np.zeros((len(listed), (len(listed) + 7) // 8), np.uint8)
        for instruction, number in self._numbers.items():
            for needed in predecessors(instruction):
                other = self._numbers[needed]
                self._rows[number] |= self._rows[other]
                self._set(number, other)

    def leads(self, source: Instruction, target: Instruction) -> bool:
        """Whether `target` needs `source`."""
        byte, bit = divmod(self._numbers[source], 8)
        return bool(self._rows[self._numbers[target], byte] >> bit & 1)

    def merge(self, first: Instruction, second: Instruction, parts: Iterable[Instruction]) -> None:
        """Both become one instruction, for which all of `parts` stand.

        A reader of one of the two now needs what either needs.
        """
        kept, gone = self._numbers.pop(first), self._numbers.pop(second)
        needing = self._needing(kept) | self._needing(gone)
        needing[[kept, gone]] = True
        self._rows[needing] |= self._rows[kept] | self._rows[gone]
        self._rows[needing, kept // 8] |= np.uint8(1 << kept % 8)
        # The merged instruction does not need itself.
        for number in (kept, gone):
            self._rows[kept, number // 8] &= np.uint8(~(1 << number % 8) & 0xFF)
        for part in parts:
            self._numbers[part] = kept

    def _set(self, number: int, other: int) -> None:
        self._rows[number, other // 8] |= np.uint8(1 << other % 8)

    def _needing(self, number: int) -> npt.NDArray[np.bool_]:
        column: npt.NDArray[np.bool_] = (self._rows[:, number // 8] & np.uint8(1 << number % 8)) != 0
        return column


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
