"""How reports, options and notes call an output: `out`, `out[1][0]`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlotool.ir.types import ShapeIndex

_OUTPUT = re.compile(r"out(\[\d+\])*")


def output_name(index: Sequence[int]) -> str:
    """`out` for a result that is one array, `out[1][0]` for a part of a tuple."""
    return "out" + "".join(f"[{i}]" for i in index)


def output_index(name: str) -> ShapeIndex:
    """The shape index of an output as reports name it: `out`, `out[1][0]`.

    Raises:
        ValueError: it is no such name.
    """
    if not _OUTPUT.fullmatch(name):
        raise ValueError(f"{name!r} is no output; they are called out, out[1], out[1][0]")
    return tuple(map(int, re.findall(r"\d+", name)))
