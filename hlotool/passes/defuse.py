"""Fusions back to the instructions they were made of. XLA: defuser.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.ir.edit import computation_names, editing
from hlotool.ir.edit_calls import inline
from hlotool.ir.edit_dead import remove_dead_computations
from hlotool.ir.module import Module
from hlotool.ir.walk import call_order
from hlotool.passes.base import Context


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
        names = computation_names(module)
        for computation in call_order(module):
            fusions = [
                i
                for i in computation.instructions
                if i.opcode == "fusion" and self.kind in ("", i.attributes.get("kind"))
            ]
            if not fusions:
                continue
            with editing(computation) as edit:
                for fusion in fusions:
                    if context.spend("fusion"):
                        inline(module, edit, fusion, names=names)
        remove_dead_computations(module)
