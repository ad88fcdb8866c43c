"""Optimised programs as StableHLO can say them: no fusions, no layouts, no schedule.

The values stay the same; what XLA makes of the program need not.
"""

from __future__ import annotations

from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Module
from hlotool.passes.base import Context
from hlotool.passes.defuse import Defuse
from hlotool.passes.despecialize import Deschedule, DropControlDependencies, Synchronize
from hlotool.passes.drop_layouts import DropLayouts

_PASSES = (Deschedule(), DropControlDependencies(), Synchronize(), Defuse(), DropLayouts())


def logical_module(module: Module) -> Module:
    """A program that computes the same, written as a frontend would.

    Raises:
        Unsupported: it holds something that has no such form, such as a bitcast that reads padding.
    """
    copy = clone_module(module).module
    for step in _PASSES:
        step.run(copy, Context(step.name))
    for instruction in copy.instructions():
        if instruction.opcode != "custom-call" and "backend_config" in instruction.attributes:
            instruction.attributes = with_attributes(instruction.attributes, backend_config=None)
    return copy
