"""Metadata, stack frames and the free-form attributes of the IR as protos: the inverse of `metadata`."""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import count

from hlotool.errors import ProtoError
from hlotool.ir.attributes import FrontendAttributes, Metadata, RawText, StackFrameTables, Statistics
from hlotool.parse.proto.metadata import SAME_NAME
from hlotool.parse.proto.schema import Message
from hlotool.parse.text.strings import unquote
from hlotool.parse.token_reader import TokenReader


def as_bytes(text: str) -> bytes:
    """A `bytes` field that holds text; lone surrogates stand for bytes that are no UTF-8."""
    return text.encode("utf-8", errors="surrogateescape")


def write_metadata(proto: Message, metadata: Metadata) -> None:
    """Fill an OpMetadata; keys that current XLA no longer knows have no field."""
    for name in SAME_NAME:
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
        proto.file_locations.add(**asdict(row))
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
