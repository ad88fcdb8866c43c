"""Patterns that algebraic rewrites look for, as data: IDIOMS by name."""

from hlotool.lab.fuzz.programs.idioms import (  # noqa: F401 - importing a file registers its idioms
    arithmetic,
    contractions,
    control,
    functions,
    indices,
    movement,
    offload,
    reductions,
)
from hlotool.lab.fuzz.programs.idioms.table import IDIOMS, Idiom, emit_one

__all__ = ["IDIOMS", "Idiom", "emit_one"]
