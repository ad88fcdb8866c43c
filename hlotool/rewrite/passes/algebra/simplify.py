"""The pass that applies the rules. XLA: algebraic_simplifier.cc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hlotool.errors import UsageError
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_programs import remove_dead_fusion_parameters
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import Context as CallContext
from hlotool.ir.walk import contexts
from hlotool.rewrite.passes.algebra import (  # noqa: F401 - importing a file enters its rules
    arithmetic,
    logic,
    movement,
)
from hlotool.rewrite.passes.algebra.rules import RULES, Exactness, Make, Op, Rewrite, Rule
from hlotool.rewrite.passes.base import Context
from hlotool.system.user_input import did_you_mean


@dataclass(frozen=True, slots=True)
class Simplify:
    """Apply laws of arithmetic, logic and data movement.

    Attributes:
        allow: what may change: nothing (exact), the sign of zeros too, NaN too, rounding too.
        rules: only these rules; all when empty.
        fused: also inside fusions.
    """

    name: ClassVar[str] = "simplify"
    allow: Literal["exact", "zero-sign", "nan", "rounding"] = "exact"
    rules: tuple[str, ...] = ()
    fused: bool = False

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`.

        Raises:
            UsageError: there is no rule of that name.
        """
        table = self._table()
        kinds = contexts(module)
        for computation in module.computations:
            if self.fused or CallContext.FUSED not in kinds[computation]:
                with editing(computation) as edit:
                    for instruction in edit:
                        _rewrite(edit, instruction, table, context, module.is_scheduled)
        if self.fused:
            remove_dead_fusion_parameters(module)

    def _table(self) -> Mapping[str, list[Rule]]:
        """The rules that may be applied, by opcode."""
        unknown = [name for name in self.rules if name not in RULES]
        if unknown:
            meant = did_you_mean(unknown[0], RULES)
            raise UsageError(f"simplify: no rule {unknown[0]!r}; there are: {', '.join(RULES)}{meant}")
        most = Exactness(self.allow).rank
        table: dict[str, list[Rule]] = {}
        for rule in RULES.values():
            if rule.exactness.rank <= most and (not self.rules or rule.name in self.rules):
                for opcode in rule.opcodes:
                    table.setdefault(opcode, []).append(rule)
        return table


def _rewrite(
    edit: Editor,
    instruction: Instruction,
    table: Mapping[str, list[Rule]],
    context: Context,
    scheduled: bool,
) -> None:
    """Apply the first rule that fits; dynamic sizes and copies of a scheduled program are left alone."""
    rules = table.get(instruction.opcode)
    if not rules or _is_dynamic(instruction) or (scheduled and instruction.opcode == "copy"):
        return
    for rule in rules:
        found = rule.apply(Op(instruction))
        if found is not None and _fits(found, instruction) and context.spend(rule.name):
            new = found(Make(edit, instruction)) if callable(found) else found
            edit.replace(instruction, new)
            return


def _is_dynamic(instruction: Instruction) -> bool:
    shapes = [instruction.shape, *(o.shape for o in instruction.operands)]
    return not all(isinstance(s, ArrayShape) and not s.is_dynamic for s in shapes)


def _fits(found: Rewrite, old: Instruction) -> bool:
    """An instruction that exists must have the same layout and must not lose a sharding."""
    if not isinstance(found, Instruction):
        return True
    same_place = old.sharding is None or old.sharding == found.sharding
    return found is not old and found.shape == old.shape and same_place
