"""Keeping only some instructions of a program. XLA: hlo_extractor.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.errors import UsageError
from hlotool.ir.edit_extract import cone, extract
from hlotool.ir.module import Instruction, Module
from hlotool.names import did_you_mean
from hlotool.passes.base import Context


@dataclass(frozen=True, slots=True)
class Extract:
    """Keep an instruction and what it needs; the rest of the program goes.

    Attributes:
        instruction: its name, or several of one computation joined by +.
        height: only so many steps back from it; what is further away becomes a parameter. -1 is no limit.
        computation: the name of the computation it is in, where several have one of that name.
    """

    name: ClassVar[str] = "extract"
    instruction: tuple[str, ...]
    height: int = -1
    computation: str = ""

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`.

        Raises:
            UsageError: there is no such instruction, or there are several.
        """
        results = [self._find(module, name.removeprefix("%")) for name in self.instruction]
        if not context.spend("instruction"):
            return
        members = cone(results, height=self.height if self.height >= 0 else None)
        members = [m for m in members if m.opcode != "parameter"]
        try:
            cut = extract(module, members, results).module
        except ValueError as error:
            raise UsageError(f"extract: {error}") from error
        module.computations, module.entry, module.attributes = cut.computations, cut.entry, cut.attributes

    def _find(self, module: Module, name: str) -> Instruction:
        places = [c for c in module.computations if self.computation.removeprefix("%") in ("", c.name)]
        found = [(c, i) for c in places for i in c.instructions if i.name == name]
        if len(found) == 1:
            return found[0][1]
        if not found:
            known = (i.name for c in places for i in c.instructions)
            raise UsageError(f"extract: {module.name} has no instruction {name}{did_you_mean(name, known)}")
        where = ", ".join(c.name for c, _ in found)
        raise UsageError(f"extract: {name} is in several computations: say computation= one of {where}")
