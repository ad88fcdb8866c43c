"""Calls and fusions, replaced by what they call. XLA: call_inliner.cc, defuser.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.ir.edit_calls import inline
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.walk import call_sites
from hlotool.passes.base import Context, each_caller


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
        uses = {callee: len(sites) for callee, sites in call_sites(module).items()}
        for edit, call, names in each_caller(module, "call"):
            is_meant = not self.single_use or all(uses[callee] == 1 for callee in call.called)
            if is_meant and self._may(edit.computation, call) and context.spend("call"):
                inline(module, edit, call, names=names)

    def _may(self, computation: Computation, instruction: Instruction) -> bool:
        """Whether a call may go: the author can forbid it, and other threads are other devices."""
        if instruction.frontend_attribute("inlineable") == "false":
            return False
        if instruction.frontend_attribute("_xla_compute_type") is not None:
            return False
        same_thread = all(c.execution_thread == computation.execution_thread for c in instruction.called)
        return same_thread and (self.composites or not instruction.flag("is_composite"))


@dataclass(frozen=True, slots=True)
class Defuse:
    """Replace every fusion by its computation.

    Attributes:
        kind: only fusions of this kind, such as kLoop or kCustom; all when empty.
    """

    name: ClassVar[str] = "defuse"
    kind: str = ""

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        for edit, fusion, names in each_caller(module, "fusion"):
            if self.kind in ("", fusion.attributes.get("kind")) and context.spend("fusion"):
                inline(module, edit, fusion, names=names)
