"""What every generated kernel is compiled behind: C++ that nvcc, NVRTC and g++ read."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

#: Later ones use what earlier ones define.
HEADERS = (
    "phases.h",
    "choices.h",
    "scatters.h",
    "elements.h",
    "tiles.h",
    "complex.h",
    "arithmetic.h",
    "functions.h",
    "complex_functions.h",
    "random.h",
)


@cache
def prelude() -> str:
    """The headers, one behind the other."""
    folder = files(__package__)
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in HEADERS)
