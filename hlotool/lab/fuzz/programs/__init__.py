"""Programs for compilers: random graphs, real programs changed, patterns that rewrites look for."""

from hlotool.lab.fuzz.programs.drawn import Drawn
from hlotool.lab.fuzz.programs.source import Source

__all__ = ["Drawn", "Source"]
