"""Message classes for the schema in `hlo.proto`, and the wire format where it is read without them.

`scripts/proto-descriptor` compiles the schema to `hlo.binpb`, from which the classes are made when the
first binary file is opened. They live in a descriptor pool of their own, so they never clash with those
that TensorFlow registers. Importing protobuf takes a while; no module outside of this package imports it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import resources
from mmap import mmap
from typing import Any, TypeAlias

from hlotool.errors import ProtoError

#: A message of the schema. Its fields are those of `hlo.proto`, which a type checker cannot see.
Message: TypeAlias = Any


@functools.cache
def message_class(name: str) -> type[Message]:
    """The class of the message `name` of `hlo.proto`."""
    from google.protobuf.message_factory import GetMessageClass

    pool, package = _pool()
    message: type[Message] = GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
    return message


def decode(name: str, content: bytes, origin: str) -> Message:
    """Decode `content` as the message `name`.

    Raises:
        ProtoError: it is no such message; `origin` is the file it came from.
    """
    from google.protobuf.message import DecodeError

    try:
        return message_class(name).FromString(content)
    except DecodeError as error:
        raise ProtoError(f"{origin}: not a complete {name}: truncated, or another format") from error


def decode_text(name: str, content: str, origin: str) -> Message:
    """Decode the text form of the message `name`; fields that the schema leaves out are passed over.

    Raises:
        ProtoError: it is no such text; the message has the line.
    """
    from google.protobuf import text_format

    try:
        return text_format.Parse(content, message_class(name)(), allow_unknown_field=True)
    except text_format.ParseError as error:
        line = error.GetLine() or 0
        raise ProtoError(f"{origin}:{line}: not the text form of a {name}: {error}") from error


@functools.cache
def enum_names(name: str) -> dict[int, str]:
    """Names of the values of the enumeration `name`, such as `PrimitiveType` or `OpSharding.Type`."""
    pool, package = _pool()
    return {v.number: v.name for v in pool.FindEnumTypeByName(f"{package}.{name}").values}


@functools.cache
def enum_numbers(name: str) -> dict[str, int]:
    """The values of the enumeration `name` by their names."""
    return {word: number for number, word in enum_names(name).items()}


@functools.cache
def _pool() -> tuple[Any, str]:
    """A pool that holds the schema, and the name of its package."""
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    pool.AddSerializedFile(resources.files(__package__).joinpath("hlo.binpb").read_bytes())
    return pool, pool.FindFileByName("hlo.proto").package


#: Bytes of the longest base-128 number: 64 bits, seven in each.
_LONGEST = 10
#: How a field's content is written: a base-128 number, behind its length, or in so many bytes.
_VARINT, _LENGTH, _FIXED = 0, 2, {1: 8, 5: 4}


def varint(content: bytes | mmap, at: int = 0) -> tuple[int, int]:
    """The base-128 number at `at`: the position after it, and the number.

    Raises:
        ValueError: the content ends in it, or it is too long to be one.
    """
    value = 0
    for i, byte in enumerate(content[at : at + _LONGEST]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return at + i + 1, value
    raise ValueError("no base-128 number")


def fields(content: bytes | mmap, start: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """The fields of a message from `start` to `end`: their numbers, and where each one's content stands.

    Raises:
        ValueError: it is no message, or is cut short.
    """
    at = start
    while at < end:
        at, key = varint(content, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            after, _ = varint(content, at)
        elif wire_type == _LENGTH:
            at, length = varint(content, at)
            after = at + length
        elif wire_type in _FIXED:
            after = at + _FIXED[wire_type]
        else:
            raise ValueError(f"no field: wire type {wire_type}")
        if after > end:
            raise ValueError("the message ends within a field")
        yield number, (at, after)
        at = after
