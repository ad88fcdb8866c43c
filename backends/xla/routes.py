"""Which way a program takes into XLA's compiler.

jaxlib compiles StableHLO, which has no layouts, no backend configs and no schedule. A program that the
frontend made needs none of these. One that XLA's passes have been over does, so it takes the place of a
trivial program in the middle of the compiler (jaxlib 0.10.2 and newer): before the scheduler, or after it
when it is scheduled. Only what follows is done again then: scheduling, buffer assignment, code generation.
"""

from __future__ import annotations

from hlotool.backends.xla.protocol import Route
from hlotool.ir.module import Module

#: What XLA's passes make, and StableHLO has no word for. Layouts prove nothing: frontends write them, too.
_MADE_BY_PASSES = frozenset({"fusion", "copy-start", "copy-done", "bitcast"})


def route_for(module: Module) -> Route:
    """The way that suits `module`: what it holds decides, not the name of its stage."""
    if module.is_scheduled:
        return Route.POST_SCHEDULER
    is_optimised = any(i.opcode in _MADE_BY_PASSES for i in module.instructions())
    return Route.PRE_SCHEDULER if is_optimised else Route.MLIR
