"""Message classes for the schema in `hlo.proto`, made when the first binary file is opened.

`scripts/proto-descriptor` compiles the schema to `hlo.binpb`, from which the classes are made. They live in a
descriptor pool of their own, so they never clash with those that TensorFlow registers. Importing protobuf
takes a while; nothing outside this package imports it.
"""

from __future__ import annotations

import functools
from importlib import resources
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
        raise ProtoError(f"{origin}: not a complete {name}: truncated, or something else") from error


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
