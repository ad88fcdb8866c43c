"""Constant folding: what needs only constants is computed, on the reference. XLA: constant_folding.cc."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hlotool.errors import HlotoolError, UsageError
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_extract import cone, extract
from hlotool.ir.effects import has_side_effect
from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape
from hlotool.passes.base import Context, Evaluator

#: Not worth a constant: they say the same in less space.
_COMPACT = frozenset({"broadcast", "iota", "constant"})
#: Never folded: their results have no literal, or mean something beyond their value.
_NEVER = opcodes_with(Trait.FORWARDS, Trait.ORDERS, Class.SOURCE) - {"constant", "iota"}
_OPAQUE_CLASSES = frozenset({Class.COLLECTIVE, Class.HOST, Class.RANDOM})


@dataclass(frozen=True, slots=True)
class Fold:
    """Replace what depends on constants alone by its value, as the reference computes it.

    Attributes:
        max_elements: arrays of more elements stay; so does what needs such an array on the way.
        loops: also run loops, calls and fusions.
    """

    name: ClassVar[str] = "fold"
    max_elements: int = 4096
    loops: bool = False

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`.

        Raises:
            UsageError: there is no reference to compute with.
        """
        if context.evaluate is None:
            raise UsageError("pass fold needs an evaluator")
        for computation in module.computations:
            with editing(computation) as edit:
                for instruction in list(self._frontier(edit, computation)):
                    self._fold(module, edit, instruction, context, context.evaluate)

    def _frontier(self, edit: Editor, computation: Computation) -> Iterator[Instruction]:
        """Foldable instructions that something reads which stays as it is."""
        known: set[Instruction] = set()
        for instruction in edit:
            if self._is_foldable(instruction) and known.issuperset(instruction.operands):
                known.add(instruction)
        kept = {i for i in edit if i not in known}
        for instruction in reversed(list(edit)):
            is_read = instruction is computation.root or not kept.isdisjoint(edit.users(instruction))
            if instruction in known and is_read:
                if instruction.opcode in _COMPACT:
                    kept.add(instruction)
                else:
                    yield instruction

    def _is_foldable(self, instruction: Instruction) -> bool:
        shape = instruction.shape
        if instruction.opcode == "constant":
            return instruction.literal is not None and not instruction.literal.has_elided
        return (
            isinstance(shape, ArrayShape)
            and not shape.is_dynamic
            and shape.size <= self.max_elements
            and instruction.opcode not in _NEVER
            and (self.loops or instruction.row.opcode_class is not Class.CONTROL)
            and instruction.row.opcode_class not in _OPAQUE_CLASSES
            and not has_side_effect(instruction)
        )

    def _fold(
        self, module: Module, edit: Editor, instruction: Instruction, context: Context, evaluate: Evaluator
    ) -> None:
        try:
            value = evaluate(extract(module, cone([instruction]), [instruction]).module)
        except HlotoolError:
            # What the reference cannot compute stays as it is.
            return
        if context.spend(instruction.opcode):
            literal = Literal(instruction.shape, np.asarray(value, order="C"))
            folded = Instruction(instruction.name, "constant", instruction.shape, literal=literal)
            edit.replace(instruction, edit.add(folded, before=instruction))
