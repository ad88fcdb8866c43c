"""Metadata, stack frames and the free-form attributes of the IR as protos: the inverse of `metadata`."""

from __future__ import annotations

import re
from dataclasses import asdict

from hlotool.errors import ProtoError
from hlotool.ir.attributes import FrontendAttributes, Metadata, RawText, StackFrameTables, Statistics
from hlotool.parse.proto.metadata import SAME_NAME
from hlotool.parse.proto.schema import Message
from hlotool.parse.text.strings import unquote


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


_ORIGIN_TOKEN = re.compile(r'\s*(?:(?P<sign>[(){},])|(?P<name>"(?:[^"\\]|\\.)*")|(?P<number>\d+))')


def write_origin(proto: Message, origin: RawText) -> None:
    """Fill an OriginalValueProto from `{"name" {index}}` or `{(…, …)}`.

    Raises:
        ProtoError: the text is not written like that.
    """
    if origin.text == "{[synthetic_call]}":
        proto.is_synthetic_call = True
        return
    tokens = _Tokens(origin.text)
    tokens.expect("{")
    proto.SetInParent()
    _write_origin_node(proto, tokens, ())
    tokens.expect("}")


class _Tokens:
    """The words of an origin, from front to back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self) -> re.Match[str]:
        """The next one, which is consumed."""
        found = self._look()
        self._at = found.end()
        return found

    def is_next(self, sign: str) -> bool:
        """Whether `sign` comes next; it is then consumed."""
        found = self._look()
        if found["sign"] != sign:
            return False
        self._at = found.end()
        return True

    def expect(self, sign: str) -> None:
        """Consume `sign`."""
        if not self.is_next(sign):
            raise ProtoError(f"origin {self._text}: expected {sign!r}")

    def _look(self) -> re.Match[str]:
        found = _ORIGIN_TOKEN.match(self._text, self._at)
        if found is None:
            raise ProtoError(f"origin {self._text} cannot be written to a proto")
        return found


def _write_origin_node(proto: Message, tokens: _Tokens, index: tuple[int, ...]) -> None:
    if tokens.is_next("("):
        number = 0
        while not tokens.is_next(")"):
            _write_origin_node(proto, tokens, (*index, number))
            number += 1
            tokens.is_next(",")
        return
    braced = tokens.is_next("{")
    element = proto.elements.add(shape_index=index)
    if braced and tokens.is_next("}"):
        return
    element.original_array.instruction_name = unquote(tokens.next()["name"] or '""')
    if tokens.is_next("{"):
        while not tokens.is_next("}"):
            element.original_array.shape_index.append(int(tokens.next()["number"]))
            tokens.is_next(",")
    if braced:
        tokens.expect("}")
