"""Fusions back to the instructions they were made of. XLA: defuser.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.ir.edit_calls import inline
from hlotool.ir.module import Module
from hlotool.passes.base import Context, each_caller


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
