"""How attributes lie in protos: forms that many share, origins of instructions, free-form attributes.

Each is read and written. A reader returns None where HLO text would not print the attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count
from operator import attrgetter
from typing import Any

from msgspec import structs

from hlotool.errors import ProtoError
from hlotool.ir.attributes import (
    AttributeValue,
    BackendConfig,
    FileLocation,
    FrontendAttributes,
    Metadata,
    RawText,
    StackFrame,
    StackFrameTables,
    Statistics,
)
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.printed_annotations import lexes_as_dictionary, quote
from hlotool.parser.proto.schema import Message, enum_names, enum_numbers
from hlotool.parser.tokens import TokenReader, unquote

#: Fields of OpMetadata that Metadata has under the same name.
_SAME_NAME = tuple(
    field.name
    for field in fields(Metadata)
    if field.name not in ("profile_type", "metadata_payload", "obsolete")
)


def as_text(content: bytes) -> str:
    """A `bytes` field that holds text; bytes that are no UTF-8 survive as lone surrogates."""
    return content.decode("utf-8", errors="surrogateescape")


def read_metadata(proto: Message, payloads: Sequence[bytes] = ()) -> Metadata | None:
    """The metadata of an OpMetadata; `payloads` are those of the module.

    None where text shows no metadata: when neither operation nor source nor scheduling name is known.
    """
    metadata = Metadata(
        **{name: getattr(proto, name) for name in _SAME_NAME},
        profile_type=tuple(proto.profile_type),
        metadata_payload=_payload(proto.metadata_payload, payloads),
    )
    shown = (proto.op_type, proto.op_name, proto.source_file, proto.scheduling_name, proto.stack_frame_id)
    return metadata if any(shown) else None


def _payload(proto: Message, payloads: Sequence[bytes]) -> str:
    """A string that stands here, or in the module's list of strings."""
    if proto.WhichOneof("payload_source") != "id":
        return as_text(proto.value)
    if not 0 <= proto.id < len(payloads):
        raise ProtoError(f"payload {proto.id} of {len(payloads)} is referred to")
    return as_text(payloads[proto.id])


def read_backend_config(proto: Message, payloads: Sequence[bytes]) -> BackendConfig | None:
    """The backend_config of an instruction, None when it has none."""
    text = as_text(proto.backend_config)
    if proto.HasField("backend_config_payload"):
        text = _payload(proto.backend_config_payload, payloads)
    return BackendConfig(text, quoted=not lexes_as_dictionary(text)) if text else None


def read_frontend_attributes(proto: Message) -> FrontendAttributes | None:
    """The attributes by key, None when there are none."""
    entries = tuple((key, _attribute_text(value)) for key, value in sorted(proto.map.items()))
    return FrontendAttributes(entries) if entries else None


def _attribute_text(value: str) -> str:
    return value if lexes_as_dictionary(value) else quote(value)


def read_statistics(proto: Message) -> Statistics | None:
    """The statistics of a StatisticsViz, None when there are none."""
    values = tuple((s.stat_name, s.stat_val) for s in proto.statistics)
    return Statistics(proto.stat_index_to_visualize, values) if values else None


def read_origin(proto: Message) -> RawText:
    """`origin={…}`: which values of the original program an instruction computes."""
    if proto.is_synthetic_call:
        return RawText("{[synthetic_call]}")
    arrays = {tuple(e.shape_index): e.original_array for e in proto.elements}
    return RawText(f"{{{_origin_node((), arrays)}}}")


def _origin_node(index: tuple[int, ...], arrays: Mapping[tuple[int, ...], Message]) -> str:
    """A leaf `{"name" {index}}`, or `(…, …)` for the parts of a tuple."""
    depth = len(index)
    if index not in arrays:
        parts = [child[depth] for child in arrays if child[:depth] == index]
        return f"({', '.join(_origin_node((*index, i), arrays) for i in range(max(parts, default=-1) + 1))})"
    array = arrays[index]
    if not array.instruction_name:
        return "{}"
    part = f" {{{','.join(map(str, array.shape_index))}}}" if array.shape_index else ""
    return f'{{"{array.instruction_name}"{part}}}'


_LOCATION = attrgetter("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")


def read_stack_frames(proto: Message) -> StackFrameTables | None:
    """The four tables, numbered from 1 as in text; None when they are empty.

    Parents are numbered from 1 as well, 0 meaning none, while text prints each one higher.
    """
    frames = enumerate(proto.stack_frames, 1)
    tables = StackFrameTables(
        dict(enumerate(proto.file_names, 1)),
        dict(enumerate(proto.function_names, 1)),
        {i: FileLocation(*_LOCATION(row)) for i, row in enumerate(proto.file_locations, 1)},
        {i: StackFrame(frame.file_location_id, frame.parent_frame_id + 1) for i, frame in frames},
    )
    return tables if tables != StackFrameTables() else None


def as_bytes(text: str) -> bytes:
    """A `bytes` field that holds text; lone surrogates stand for bytes that are no UTF-8."""
    return text.encode("utf-8", errors="surrogateescape")


def write_metadata(proto: Message, metadata: Metadata) -> None:
    """Fill an OpMetadata; keys that current XLA no longer knows have no field."""
    for name in _SAME_NAME:
        setattr(proto, name, getattr(metadata, name))
    proto.profile_type.extend(metadata.profile_type)
    if metadata.metadata_payload:
        proto.metadata_payload.value = as_bytes(metadata.metadata_payload)


def write_frontend_attributes(proto: Message, attributes: FrontendAttributes) -> None:
    """Fill a FrontendAttributes."""
    for key, text in attributes.entries:
        proto.map[key] = unquote(text) if text.startswith('"') else text


def write_statistics(proto: Message, statistics: Statistics) -> None:
    """Fill a StatisticsViz."""
    proto.stat_index_to_visualize = statistics.visualizing_index
    for name, value in statistics.values:
        proto.statistics.add(stat_name=name, stat_val=value)


def write_stack_frames(proto: Message, tables: StackFrameTables) -> None:
    """Fill a StackFrameIndexProto; rows are numbered from 1 without gaps."""
    proto.file_names.extend(tables.file_names.values())
    proto.function_names.extend(tables.function_names.values())
    for row in tables.file_locations.values():
        proto.file_locations.add(**structs.asdict(row))
    for frame in tables.stack_frames.values():
        parent = frame.parent_frame_id - 1
        proto.stack_frames.add(file_location_id=frame.file_location_id, parent_frame_id=parent)


_ORIGIN_TOKEN = re.compile(r'\s*([(){},]|"(?:[^"\\]|\\.)*"|\d+)')


def write_origin(proto: Message, origin: RawText) -> None:
    """Fill an OriginalValueProto from `{"name" {index}}` or `{(…, …)}`.

    Raises:
        ProtoError: the text is not written like that.
    """
    if origin.text == "{[synthetic_call]}":
        proto.is_synthetic_call = True
        return
    proto.SetInParent()
    reader = TokenReader(origin.text, _ORIGIN_TOKEN)
    try:
        reader.take("{")
        _write_origin_node(proto, reader, ())
        reader.take("}")
        reader.finish()
    except ValueError as error:
        raise ProtoError(f"origin: {error}") from error


def _write_origin_node(proto: Message, reader: TokenReader, index: tuple[int, ...]) -> None:
    if reader.peek() == "(":
        numbers = count()
        reader.listed("(", ")", lambda: _write_origin_node(proto, reader, (*index, next(numbers))))
        return
    is_braced = reader.take("{", optional=True)
    element = proto.elements.add(shape_index=index)
    if is_braced and reader.take("}", optional=True):
        return
    element.original_array.instruction_name = unquote(reader.quoted())
    if reader.peek() == "{":
        element.original_array.shape_index.extend(reader.listed("{", "}", reader.integer))
    if is_braced:
        reader.take("}")


@dataclass(frozen=True, slots=True)
class FieldContext:
    """What an attribute's reader may look at.

    Attributes:
        proto: the HloInstructionProto.
        operands: already decoded.
        called: computations by the order of `called_computation_ids`.
    """

    proto: Message
    operands: Sequence[Instruction]
    called: Sequence[Computation]

    @property
    def opcode(self) -> str:
        """The instruction's opcode."""
        return str(self.proto.opcode)


@dataclass(frozen=True, slots=True)
class Field:
    """How one attribute is stored.

    Attributes:
        read: gives the value, or None where text would not print it.
        write: sets the value in an HloInstructionProto.
    """

    read: Callable[[FieldContext], AttributeValue | None]
    write: Callable[[Message, Any], None]


def _holder(proto: Message, path: str) -> tuple[Message, str]:
    """The message that holds the last field of `path`, and that field."""
    outer, _, field = path.rpartition(".")
    return (attrgetter(outer)(proto) if outer else proto), field


def plain(path: str, shown: Callable[[Any], AttributeValue | None]) -> Field:
    """One value; `shown` says what text shows of it."""

    def write(proto: Message, value: Any) -> None:
        holder, field = _holder(proto, path)
        setattr(holder, field, value)

    get = attrgetter(path)
    return Field(lambda c: shown(get(c.proto)), write)


def flag(path: str) -> Field:
    """A truth value that text shows only when it is true."""
    return plain(path, lambda value: True if value else None)


def number(path: str) -> Field:
    """A number that text always shows."""
    return plain(path, int)


def group_count(path: str) -> Field:
    """A group count, which text shows unless it is 1; protos before its invention say 0."""
    return plain(path, lambda groups: groups if groups > 1 else None)


def word(path: str) -> Field:
    """Text that is always shown."""
    return plain(path, str)


def string(field: str) -> Field:
    """Text in a field of bytes that is shown unless it is empty."""
    return Field(
        lambda c: as_text(getattr(c.proto, field)) or None,
        lambda proto, value: setattr(proto, field, as_bytes(value)),
    )


def ints(path: str, *, is_optional: bool = False) -> Field:
    """A list of numbers; text shows an empty one unless it `is_optional`."""

    def write(proto: Message, values: Any) -> None:
        holder, field = _holder(proto, path)
        if holder is not proto:
            holder.SetInParent()
        getattr(holder, field).extend(values)

    get = attrgetter(path)
    return Field(lambda c: tuple(get(c.proto)) or (None if is_optional else ()), write)


def enum(path: str, type_name: str, hidden: str = "", drop: str = "", *, lower: bool = False) -> Field:
    """The name of an enumeration's value, without the prefix `drop`; None for the value `hidden`."""

    def read(context: FieldContext) -> str | None:
        number = get(context.proto)
        name = enum_names(type_name).get(number, str(number))
        if name == hidden:
            return None
        shown = name.removeprefix(drop)
        return shown.lower() if lower else shown

    def write(proto: Message, value: Any) -> None:
        name, numbers = f"{drop}{value.upper()}", enum_numbers(type_name)
        if name not in numbers:
            raise ProtoError(f"{value} is no value of {type_name}")
        holder, field = _holder(proto, path)
        setattr(holder, field, numbers[name])

    get = attrgetter(path)
    return Field(read, write)


def unwritten(read: Callable[[FieldContext], AttributeValue | None]) -> Field:
    """What has no field of its own: called computations, which are written as numbers."""
    return Field(read, lambda proto, value: None)


def called(index: int) -> Field:
    """One of the computations that the instruction calls."""
    return unwritten(lambda c: c.called[index] if index < len(c.called) else None)
