"""Where in the user's program an instruction comes from, as far as its module tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from hlotool.ir.attributes import Metadata, StackFrameTables

#: Folders that packages are installed to; the standard library; modules that Python has built in.
_INSTALLED = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages)[/\\]|[/\\][Ll]ib(?:64)?[/\\]python3\.\d+t?[/\\]|^<frozen "
)


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A line of a program.

    Attributes:
        file: as the frontend named it.
        line: 0 when unknown.
        function: empty when unknown.
    """

    file: str
    line: int = 0
    function: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether it is a line of an installed package or of Python's library, and so nobody's own."""
        return is_installed(self.file)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@lru_cache(maxsize=4096)
def is_installed(file: str) -> bool:
    """Whether `file` belongs to an installed package or to Python's library."""
    return _INSTALLED.search(file) is not None


def source_position(metadata: Metadata, tables: StackFrameTables | None) -> SourcePosition | None:
    """File, line and function of the innermost frame: written in the metadata, or in the module's tables."""
    if metadata.source_file:
        return SourcePosition(metadata.source_file, metadata.source_line)
    return next(stack_positions(metadata, tables), None)


def user_position(metadata: Metadata, tables: StackFrameTables | None) -> SourcePosition | None:
    """The innermost frame of the user's own code; None where every known one is an installed package's."""
    for position in stack_positions(metadata, tables):
        if not position.is_installed:
            return position
    own = SourcePosition(metadata.source_file, metadata.source_line)
    return own if own.file and not own.is_installed else None


def stack_positions(metadata: Metadata, tables: StackFrameTables | None) -> Iterator[SourcePosition]:
    """The frames that the module's tables have of an instruction, the innermost first."""
    if tables is None:
        return
    number, seen = metadata.stack_frame_id, set[int]()
    # A parent is printed one higher than its row, so that 1 is none; tables may be damaged, or go in circles.
    while number not in seen and (frame := tables.stack_frames.get(number)) is not None:
        seen.add(number)
        location = tables.file_locations.get(frame.file_location_id)
        if location is None:
            return
        yield SourcePosition(
            tables.file_names.get(location.file_name_id, ""),
            location.line,
            tables.function_names.get(location.function_name_id, ""),
        )
        number = frame.parent_frame_id - 1
