"""Conditionals whose branch is known, or cheap enough to compute them all.

XLA: conditional_simplifier.cc, conditional_to_select.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hlotool.analysis.constants import integer_constant
from hlotool.ir.builder import array
from hlotool.ir.edit import Editor, Names, computation_names, editing
from hlotool.ir.edit_calls import insert_body
from hlotool.ir.edit_dead import remove_dead_computations
from hlotool.ir.effects import has_side_effect
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, leaves
from hlotool.ir.walk import branches, call_order, reachable
from hlotool.passes.base import Context


@dataclass(frozen=True, slots=True)
class SimplifyConditionals:
    """Take the branch of a conditional whose predicate is constant; with `select`, compute all branches.

    Attributes:
        select: replace conditionals by the instructions of all branches and selects.
        max_instructions: with `select`, conditionals with larger branches stay.
    """

    name: ClassVar[str] = "simplify-conditionals"
    select: bool = False
    max_instructions: int = 32

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        names = computation_names(module)
        for computation in call_order(module):
            if any(i.opcode == "conditional" for i in computation.instructions):
                with editing(computation) as edit:
                    for conditional in edit:
                        if conditional.opcode == "conditional":
                            self._simplify(module, edit, conditional, names, context)
        remove_dead_computations(module)

    def _simplify(
        self, module: Module, edit: Editor, conditional: Instruction, names: Names, context: Context
    ) -> None:
        taken = _known_branch(conditional)
        if taken is not None:
            if context.spend("known branch"):
                body, argument = branches(conditional)[taken], conditional.operands[1 + taken]
                result = insert_body(module, edit, body, [argument], conditional, names)
                edit.replace_uses(conditional, result)
                edit.remove(conditional)
        elif self.select and self._is_cheap(conditional) and context.spend("select"):
            _select(module, edit, conditional, names)

    def _is_cheap(self, conditional: Instruction) -> bool:
        """No branch does anything but compute arrays, and not for long."""
        parts = {c for branch in branches(conditional) for c in reachable(branch)}
        instructions = [i for part in parts for i in part.instructions]
        return (
            len(instructions) <= self.max_instructions
            and not any(i.opcode == "while" or has_side_effect(i) for i in instructions)
            and all(isinstance(leaf, ArrayShape) for _, leaf in leaves(conditional.shape))
        )


def _known_branch(conditional: Instruction) -> int | None:
    """The branch that a constant chooses: true is the first, and what is out of range is the last."""
    value = integer_constant(conditional.operands[0])
    if value is None:
        return None
    if _is_predicate(conditional.operands[0]):
        return 0 if value else 1
    count = len(branches(conditional))
    return value if 0 <= value < count else count - 1


def _is_predicate(value: Instruction) -> bool:
    return isinstance(value.shape, ArrayShape) and value.shape.element_type is ElementType.PRED


def _select(module: Module, edit: Editor, conditional: Instruction, names: Names) -> None:
    index, *arguments = conditional.operands
    results = [
        insert_body(module, edit, body, [argument], conditional, names)
        for body, argument in zip(branches(conditional), arguments)
    ]
    chooser = _Chooser(edit, conditional)
    chosen = results[-1]
    for number in range(len(results) - 2, -1, -1):
        holds = index if _is_predicate(index) else chooser.equals(index, number)
        chosen = chooser.choose(holds, results[number], chosen)
    edit.replace_uses(conditional, chosen)
    edit.remove(conditional)


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Adds instructions in front of a conditional."""

    edit: Editor
    conditional: Instruction

    def _add(self, opcode: str, shape: Shape, operands: Sequence[Instruction] = ()) -> Instruction:
        made = Instruction(self.conditional.name, opcode, shape, tuple(operands))
        made.metadata = self.conditional.metadata
        return self.edit.add(made, before=self.conditional)

    def equals(self, index: Instruction, number: int) -> Instruction:
        """Whether the index is `number`."""
        constant = self._add("constant", array("s32"))
        constant.literal = Literal(constant.shape, np.array(number, np.int32))
        compare = self._add("compare", array("pred"), [index, constant])
        compare.attributes = {"direction": "EQ"}
        return compare

    def choose(self, holds: Instruction, first: Instruction, second: Instruction) -> Instruction:
        """`first` where the predicate holds, else `second`; tuples element by element."""
        if isinstance(first.shape, TupleShape):
            pairs = [
                self.choose(holds, self._element(first, n), self._element(second, n))
                for n in range(len(first.shape.elements))
            ]
            return self._add("tuple", TupleShape(tuple(p.shape for p in pairs)), pairs)
        if dims := first.dims:
            holds = self._add("broadcast", array("pred", *dims), [holds])
            holds.attributes = {"dimensions": ()}
        return self._add("select", first.shape, [holds, first, second])

    def _element(self, value: Instruction, index: int) -> Instruction:
        part = self._add("get-tuple-element", value.tuple_shape.elements[index], [value])
        part.attributes = {"index": index}
        return part
