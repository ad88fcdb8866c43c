"""Inlining of calls. XLA: call_inliner.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.ir.edit import Names, computation_names, editing
from hlotool.ir.edit_calls import inline
from hlotool.ir.edit_dead import remove_dead_computations
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import call_order, call_sites
from hlotool.passes.base import Context


@dataclass(frozen=True, slots=True)
class Inline:
    """Put the body of every `call` in its place.

    Attributes:
        single_use: only computations that are called once.
        composites: also calls that stand for a composite operation.
    """

    name: ClassVar[str] = "inline"
    single_use: bool = False
    composites: bool = True

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        names = computation_names(module)
        uses = {callee: len(sites) for callee, sites in call_sites(module).items()}
        for computation in call_order(module):
            calls = [c for c in computation.instructions if self._may(computation, c)]
            if self.single_use:
                calls = [c for c in calls if all(uses[callee] == 1 for callee in c.called)]
            _inline_all(module, computation, calls, names, context)
        remove_dead_computations(module)

    def _may(self, computation: Computation, instruction: Instruction) -> bool:
        """Whether it is a call that may go; the author can forbid it, and other threads are other devices."""
        if instruction.opcode != "call":
            return False
        if instruction.frontend_attribute("inlineable") == "false":
            return False
        if instruction.frontend_attribute("_xla_compute_type") is not None:
            return False
        same_thread = all(c.execution_thread == computation.execution_thread for c in instruction.called)
        return same_thread and (self.composites or not instruction.flag("is_composite"))


def _inline_all(
    module: Module, computation: Computation, calls: list[Instruction], names: Names, context: Context
) -> None:
    if calls:
        with editing(computation) as edit:
            for call in calls:
                if context.spend("call"):
                    inline(module, edit, call, names=names)
