"""Text of what annotates a program: metadata, source positions, backend configs, shardings, meshes.

XLA: hlo_op_metadata.cc, hlo_lexer.cc (LexJsonDict), hlo_module.cc; hlo_sharding.cc, named_sharding.h,
mesh_and_axis.h, replica_group.cc, tile_assignment.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import lru_cache

from msgspec import Struct

from hlotool.ir.attributes import (
    BackendConfig,
    FrontendAttributes,
    Ints,
    IotaTiles,
    Mesh,
    MeshAxis,
    Metadata,
    NamedSharding,
    ReplicaGroups,
    ShardedDimension,
    Sharding,
    StackFrameTables,
)
from hlotool.ir.types import join_indexed

#: Folders that packages are installed to; the standard library; modules that Python has built in.
_INSTALLED = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages)[/\\]|[/\\][Ll]ib(?:64)?[/\\]python3\.\d+t?[/\\]|^<frozen "
)


class SourcePosition(Struct, frozen=True):
    """A line of a program.

    Attributes:
        file: as the frontend named it.
        line: 0 when unknown.
        function: empty when unknown.
        columns: where in the line it stands, from and up to, in bytes from 0; up to 0 is to the end of the
            line, and (0, 0) is unknown.
    """

    file: str
    line: int = 0
    function: str = ""
    columns: tuple[int, int] = (0, 0)

    @property
    def is_installed(self) -> bool:
        """Whether it is a line of an installed package or of Python's library, and so not the user's own."""
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
            (location.column, location.end_column if location.end_line == location.line else 0),
        )
        number = frame.parent_frame_id - 1


_ESCAPES = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}
_ESCAPE_TABLE = [
    _ESCAPES.get(byte, chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in range(256)
]
_NEEDS_ESCAPE = re.compile(r"[^ -!#-&(-\[\]-~]")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
#: In XLA's order, which is that of the fields.
_METADATA_KEYS = tuple(field.name for field in fields(Metadata) if field.name != "obsolete")
_BRACE_OR_QUOTE = re.compile(r'[{}"]')


def c_escape(text: str) -> str:
    """C escapes for all but printable ASCII; other characters become the octal bytes of their UTF-8."""
    if not _NEEDS_ESCAPE.search(text):
        return text
    return "".join(_ESCAPE_TABLE[byte] for byte in text.encode("utf-8", "surrogateescape"))


def quote(text: str) -> str:
    """`text` in quotes, escaped as XLA escapes it."""
    return f'"{c_escape(text)}"'


def lexes_as_dictionary(text: str) -> bool:
    """Whether `text` may stand without quotes: balanced braces around anything, strings respected."""
    if not text.startswith("{"):
        return False
    depth, at = 0, 0
    while found := _BRACE_OR_QUOTE.search(text, at):
        at = found.end()
        if found[0] == '"':
            string = _QUOTED.match(text, found.start())
            if string is None:
                return False
            at = string.end()
            continue
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return at == len(text)
    return False


def metadata_text(metadata: Metadata) -> str:
    """`op_name="…" source_line=3 …`, no braces; keys that current XLA rejects are left out."""
    values = ((key, getattr(metadata, key)) for key in _METADATA_KEYS)
    return " ".join(f"{key}={_metadata_value(value)}" for key, value in values if value)


def _metadata_value(value: str | int | Ints) -> str:
    if isinstance(value, str):
        return quote(value)
    return f"{{{','.join(map(str, value))}}}" if isinstance(value, tuple) else str(value)


def frontend_text(attributes: FrontendAttributes) -> str:
    """`{a="x",b={json}}`, sorted by key."""
    return "{" + ",".join(f"{key}={value}" for key, value in sorted(attributes.entries)) + "}"


def backend_config_text(config: BackendConfig) -> str:
    """The bare text where the lexer can find its end, else a quoted string."""
    return config.text if lexes_as_dictionary(config.text) else quote(config.text)


def stack_frame_tables_text(tables: StackFrameTables) -> str:
    """The four tables after the HloModule line, each followed by a blank line."""
    parts: list[str] = []
    for title, names in (("FileNames", tables.file_names), ("FunctionNames", tables.function_names)):
        parts.append(
            "".join([f"{title}\n", *(f"{row} {quote(name)}\n" for row, name in names.items()), "\n"])
        )
    locations = (
        f"{row} {{file_name_id={at.file_name_id} function_name_id={at.function_name_id} line={at.line}"
        f" end_line={at.end_line} column={at.column} end_column={at.end_column}}}\n"
        for row, at in tables.file_locations.items()
    )
    parts.append("".join(["FileLocations\n", *locations, "\n"]))
    frames = (
        f"{row} {{file_location_id={frame.file_location_id} parent_frame_id={frame.parent_frame_id}}}\n"
        for row, frame in tables.stack_frames.items()
    )
    parts.append("".join(["StackFrames\n", *frames, "\n"]))
    return "".join(parts)


def sharding_text(sharding: Sharding, metadata: bool = True) -> str:
    """`{devices=[2,2]<=[4]}` and its many relatives; `metadata` says whether its metadata is printed."""
    if sharding.kind == "tuple":
        return "{" + join_indexed(sharding_text(e, metadata) for e in sharding.elements) + "}"
    shown = sharding.metadata if metadata else ()
    if sharding.named is not None:
        return "{" + ", ".join(_named_parts(sharding, sharding.named, shown)) + "}"
    return "{" + " ".join(_parts(sharding, shown)) + "}"


def _parts(sharding: Sharding, metadata: tuple[Metadata, ...]) -> Iterator[str]:
    if sharding.kind == "tiled":
        yield _devices(sharding)
        if sharding.last_tile_dim_replicate:
            yield "last_tile_dim_replicate"
        if sharding.last_tile_dims:
            yield f"last_tile_dims={{{', '.join(sharding.last_tile_dims)}}}"
    elif sharding.kind == "maximal":
        yield f"maximal device={sharding.device}"
    else:
        yield sharding.kind
    if sharding.shard_group is not None:
        yield f"{sharding.shard_group[0]} {sharding.shard_group[1]}"
    if len(metadata) == 1:
        yield f"metadata={{{metadata_text(metadata[0])}}}"
    elif metadata:
        yield _metadata_list(metadata)


def _devices(sharding: Sharding) -> str:
    if sharding.iota is not None:
        return f"devices={iota_text(sharding.iota)}"
    return f"devices=[{_commas(sharding.tile_dims)}]{_commas(sharding.devices)}"


def _metadata_list(metadata: Iterable[Metadata]) -> str:
    return "metadata={" + ", ".join(f"{{{metadata_text(m)}}}" for m in metadata) + "}"


def _named_parts(sharding: Sharding, named: NamedSharding, metadata: tuple[Metadata, ...]) -> Iterator[str]:
    yield mesh_text(named.mesh)
    if sharding.kind in ("replicated", "unreduced", "manual") and not named.dims:
        yield sharding.kind
    elif sharding.kind != "maximal":
        yield f"[{', '.join(map(_dimension_text, named.dims))}]"
        for key in ("replicated", "unreduced", "manual"):
            if axes := getattr(named, key):
                yield f"{key}={{{', '.join(map(_axis_text, axes))}}}"
    if metadata:
        yield _metadata_list(metadata)


def _dimension_text(dimension: ShardedDimension) -> str:
    parts = [_axis_text(axis) for axis in dimension.axes]
    if not dimension.closed:
        parts.append("?")
    priority = "" if dimension.priority is None else f"p{dimension.priority}"
    return f"{{{', '.join(parts)}}}{priority}"


def _axis_text(axis: MeshAxis) -> str:
    part = "" if axis.size is None else f":({axis.pre_size}){axis.size}"
    return f"'{axis.name}'{part}"


def mesh_text(mesh: Mesh) -> str:
    """`mesh['x'=2,'y'=2], device_ids=(…)` or `maximal_mesh[device_id=1]`."""
    if mesh.maximal_device is not None:
        return f"maximal_mesh[device_id={mesh.maximal_device}]"
    text = "mesh[" + ",".join(f"'{name}'={size}" for name, size in mesh.axes) + "]"
    if mesh.iota is not None:
        return f"{text}, device_ids=({_iota_order(mesh.iota)})"
    return f"{text}, device_ids=({_commas(mesh.device_ids)})" if mesh.device_ids else text


def replica_groups_text(groups: ReplicaGroups) -> str:
    """`{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['x'=2,'y'=2] {'x'}`."""
    if groups.iota is not None:
        return iota_text(groups.iota)
    if groups.mesh is not None:
        return f"{mesh_text(groups.mesh.mesh)} {{{','.join(map(_axis_text, groups.mesh.axes))}}}"
    return "{" + ",".join(f"{{{_commas(group)}}}" for group in groups.groups or ()) + "}"


def iota_text(tiles: IotaTiles) -> str:
    """`[2,2]<=[2,2]T(1,0)`."""
    return f"[{_commas(tiles.dims)}]<={_iota_order(tiles)}"


def _iota_order(tiles: IotaTiles) -> str:
    permutation = tiles.permutation or range(len(tiles.reshape_dims))
    transposed = f"T({_commas(permutation)})" if len(tiles.reshape_dims) > 1 else ""
    return f"[{_commas(tiles.reshape_dims)}]{transposed}"


def _commas(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
