"""Compilations that leave a dump: the flags of XLA, and since when it knows them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hlotool.backends.xla.protocol import Flag

#: The first version that reads the tables of source positions in a module's text.
READS_STACK_FRAMES: Final = (0, 8, 3)
#: The first version with a flag against elided constants.
_KNOWS_LARGE_CONSTANTS: Final = (0, 4, 38)


def dump_flags(folder: Path, passes: str, version: tuple[int, ...]) -> list[Flag]:
    """What makes XLA write the program into `folder` after each pass whose name matches `passes`."""
    flags: list[Flag] = [
        ("xla_dump_to", str(folder)),
        ("xla_dump_hlo_as_text", True),
        ("xla_dump_hlo_pass_re", passes),
    ]
    if version >= _KNOWS_LARGE_CONSTANTS:
        flags.append(("xla_dump_large_constants", True))
    return flags
