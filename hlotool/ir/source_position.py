"""Where in the user's program an instruction comes from, as far as its module tells."""

from __future__ import annotations

from dataclasses import dataclass

from hlotool.ir.attributes import Metadata, StackFrameTables


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A line of the user's program.

    Attributes:
        file: as the frontend named it.
        line: 0 when unknown.
        function: empty when unknown.
    """

    file: str
    line: int = 0
    function: str = ""


def source_position(metadata: Metadata, tables: StackFrameTables | None) -> SourcePosition | None:
    """File, line and function: written in the metadata, or in the module's tables."""
    if metadata.source_file:
        return SourcePosition(metadata.source_file, metadata.source_line)
    frame = tables.stack_frames.get(metadata.stack_frame_id) if tables else None
    location = tables.file_locations.get(frame.file_location_id) if tables and frame else None
    if tables is None or location is None:
        return None
    file = tables.file_names.get(location.file_name_id, "")
    return SourcePosition(file, location.line, tables.function_names.get(location.function_name_id, ""))
