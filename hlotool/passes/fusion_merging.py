"""Two fusions, or single instructions, made into one fusion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hlotool.ir.edit import Editor, Names, copied
from hlotool.ir.edit_calls import copy_body, outline
from hlotool.ir.module import Instruction, Module
from hlotool.ir.walk import predecessors
from hlotool.passes.base import Context
from hlotool.passes.fusion_facts import is_scalar_constant
from hlotool.passes.fusion_legality import Part


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

        Whoever needed one of the two needs what either needs.
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
