"""Conditionals whose branch is known, or cheap enough to compute them all.

XLA: conditional_simplifier.cc, conditional_to_select.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hlotool.analysis.constants import integer_constant
from hlotool.ir.builder import array
from hlotool.ir.edit import Editor, Names
from hlotool.ir.edit_calls import insert_body
from hlotool.ir.effects import has_side_effect
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType, TupleShape, leaves
from hlotool.ir.walk import branches, reachable
from hlotool.passes.algebra.rules import Make
from hlotool.passes.base import Context, each_caller


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
        for edit, conditional, names in each_caller(module, "conditional"):
            self._simplify(module, edit, conditional, names, context)

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
    make = Make(edit, conditional)
    chosen = results[-1]
    for number in range(len(results) - 2, -1, -1):
        holds = index if _is_predicate(index) else _equals(make, index, number)
        chosen = _choose(make, holds, results[number], chosen)
    edit.replace_uses(conditional, chosen)
    edit.remove(conditional)


def _equals(make: Make, index: Instruction, number: int) -> Instruction:
    """Whether the index is `number`."""
    constant = make.op("constant", shape=array("s32"))
    constant.literal = Literal(constant.shape, np.array(number, np.int32))
    return make.op("compare", index, constant, shape=array("pred"), direction="EQ")


def _choose(make: Make, holds: Instruction, first: Instruction, second: Instruction) -> Instruction:
    """`first` where the predicate holds, else `second`; tuples element by element."""
    if isinstance(first.shape, TupleShape):
        parts = []
        for number, shape in enumerate(first.shape.elements):
            one, other = (
                make.op("get-tuple-element", whole, shape=shape, index=number) for whole in (first, second)
            )
            parts.append(_choose(make, holds, one, other))
        return make.op("tuple", *parts, shape=TupleShape(tuple(part.shape for part in parts)))
    if dims := first.dims:
        holds = make.op("broadcast", holds, shape=array("pred", *dims), dimensions=())
    return make.op("select", holds, first, second, shape=first.shape)
