"""Loops whose trip count is known, as their iterations one after the other. XLA: while_loop_unroller.cc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlotool.analysis.trip_counts import static_trip_count
from hlotool.ir.edit import Editor, Names
from hlotool.ir.edit_calls import insert_body
from hlotool.ir.module import Instruction, Module
from hlotool.ir.walk import reachable
from hlotool.passes.base import Context, each_caller


@dataclass(frozen=True, slots=True)
class Unroll:
    """Replace loops with a known trip count by their iterations.

    Attributes:
        max_trips: loops of more iterations stay.
        max_instructions: loops that would become more instructions stay.
    """

    name: ClassVar[str] = "unroll"
    max_trips: int = 32
    max_instructions: int = 2000

    def run(self, module: Module, context: Context) -> None:
        """See `Pass.run`."""
        # Inner loops first: what they become counts for the outer ones.
        for edit, loop, names in each_caller(module, "while"):
            trips = static_trip_count(loop)
            if trips is not None and self._may(loop, trips) and context.spend("loop"):
                _unroll(module, edit, loop, trips, names)

    def _may(self, loop: Instruction, trips: int) -> bool:
        if trips > self.max_trips:
            return False
        body = loop.computation("body")
        own = all("channel_id" not in i.attributes for c in reachable(body) for i in c.instructions)
        # Two instructions may not use one channel.
        return own and trips * len(body.instructions) <= self.max_instructions


def _unroll(module: Module, edit: Editor, loop: Instruction, trips: int, names: Names) -> None:
    body = loop.computation("body")
    (state,) = loop.operands
    for _ in range(trips):
        state = insert_body(module, edit, body, [state], loop, names)
    edit.replace_uses(loop, state)
    edit.remove(loop)
