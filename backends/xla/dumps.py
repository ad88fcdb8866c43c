"""Compilations that leave a dump: the flags of XLA, and since when it knows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hlotool.backends.xla.protocol import Flag

#: The first version that reads the tables of source positions in a module's text.
READS_STACK_FRAMES: Final = (0, 8, 3)
#: The first version with a flag against elided constants.
_KNOWS_LARGE_CONSTANTS: Final = (0, 4, 38)


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """A dump to be written.

    Attributes:
        folder: that gets it.
        passes: regular expression of the passes after which the program is written.
    """

    folder: Path
    passes: str = ".*"


def dump_flags(dump: DumpRequest, version: tuple[int, ...]) -> list[Flag]:
    """What makes XLA write a dump."""
    flags: list[Flag] = [
        ("xla_dump_to", str(dump.folder)),
        ("xla_dump_hlo_as_text", True),
        ("xla_dump_hlo_pass_re", dump.passes),
    ]
    if version >= _KNOWS_LARGE_CONSTANTS:
        flags.append(("xla_dump_large_constants", True))
    return flags
