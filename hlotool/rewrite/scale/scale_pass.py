"""The rewrite of one program to smaller sizes, as a pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.errors import UsageError
from hlotool.ir.module import Module
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import scaled
from hlotool.rewrite.scale.records import NEVER


@dataclass(frozen=True, slots=True)
class Scale:
    """Make dimensions smaller, so that the program fits a machine.

    Attributes:
        memory: such as `8G`, that a comparison of the program may take.
    """

    name: ClassVar[str] = "scale"

    memory: str = "8G"

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`.

        Raises:
            Unsupported: the program needs more, with the smallest sizes that could be told, too.
            UsageError: `memory` is none.
        """
        if self.memory == NEVER:
            raise UsageError("pass scale: memory must be a number of bytes such as 8G")
        found = scaled({"": module}, self.memory, Limits(float("inf"), float("inf")))
        if found is None or not context.spend("program"):
            return
        made = found.programs[""]
        module.computations, module.entry, module.attributes = made.computations, made.entry, made.attributes
