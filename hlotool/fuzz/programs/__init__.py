"""Programs for compilers: random graphs, real programs changed, patterns that rewrites look for."""

from hlotool.fuzz.programs.drawn import Drawn
from hlotool.fuzz.programs.source import Source

__all__ = ["Drawn", "Source"]
