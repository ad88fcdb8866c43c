"""Message classes for the schema in `hlo.proto`, made when the first binary file is opened.

The classes live in a descriptor pool of their own, so they never clash with those that TensorFlow registers.
Importing protobuf takes a while; nothing outside this package imports it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotool.errors import ProtoError

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

#: A message of the schema. Its fields are those of `hlo.proto`, which a type checker cannot see.
Message: TypeAlias = Any

_TOKEN = re.compile(r'//[^\n]*|\s+|(?P<token>"[^"]*"|[\w.]+|[{}=;<>,])')
_SCALARS = ("bool", "bytes", "double", "float", "int32", "int64", "string", "uint32", "uint64")


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
    from google.protobuf.descriptor_pool import DescriptorPool

    text = resources.files(__package__).joinpath("hlo.proto").read_text(encoding="utf-8")
    file = read_schema(text)
    pool = DescriptorPool()
    pool.Add(file)
    return pool, file.package


def read_schema(text: str) -> FileDescriptorProto:
    """The descriptor of a schema written in the part of the proto3 language that `hlo.proto` uses."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    tokens = _Tokens(text)
    file = FileDescriptorProto(name="hlotool/hlo.proto")
    for word in tokens:
        if word == "message":
            _message(tokens, file.message_type.add())
        elif word == "enum":
            _enum(tokens, file.enum_type.add())
        else:
            tokens.skip("=") if word == "syntax" else None
            setattr(file, word, next(tokens).strip('"'))
            tokens.skip(";")
    return file


class _Tokens(Iterator[str]):
    """The words and signs of a schema."""

    def __init__(self, text: str) -> None:
        self._tokens = (m["token"] for m in _TOKEN.finditer(text) if m["token"])

    def __next__(self) -> str:
        return next(self._tokens)

    def skip(self, expected: str) -> None:
        found = next(self)
        if found != expected:
            raise ValueError(f"schema: expected {expected!r}, found {found!r}")

    def until(self, end: str) -> Iterator[str]:
        """Words up to `end`, which is consumed; the caller may take more words in between."""
        while (word := next(self)) != end:
            yield word


def _message(tokens: _Tokens, message: DescriptorProto) -> None:
    message.name = next(tokens)
    tokens.skip("{")
    for word in tokens.until("}"):
        if word == "message":
            _message(tokens, message.nested_type.add())
        elif word == "enum":
            _enum(tokens, message.enum_type.add())
        elif word == "oneof":
            message.oneof_decl.add(name=next(tokens))
            tokens.skip("{")
            for type_name in tokens.until("}"):
                _field(tokens, message, type_name, oneof=len(message.oneof_decl) - 1)
        elif word == "map":
            _map_field(tokens, message)
        elif word == "repeated":
            _field(tokens, message, next(tokens), repeated=True)
        else:
            _field(tokens, message, word)


def _field(
    tokens: _Tokens,
    message: DescriptorProto,
    type_name: str,
    *,
    repeated: bool = False,
    oneof: int | None = None,
) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    field = message.field.add(name=next(tokens))
    tokens.skip("=")
    field.number = int(next(tokens))
    tokens.skip(";")
    field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    if type_name in _SCALARS:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{type_name.upper()}")
    else:
        field.type_name = type_name
    if oneof is not None:
        field.oneof_index = oneof


def _map_field(tokens: _Tokens, message: DescriptorProto) -> None:
    """`map<key, value> name = number;`: a repeated message of pairs, as protobuf defines it."""
    tokens.skip("<")
    key = next(tokens)
    tokens.skip(",")
    value = next(tokens)
    tokens.skip(">")
    entry = message.nested_type.add()
    entry.options.map_entry = True
    _field(_Tokens("key = 1;"), entry, key)
    _field(_Tokens("value = 2;"), entry, value)
    _field(tokens, message, "", repeated=True)
    entry.name = f"{message.field[-1].name.title().replace('_', '')}Entry"
    message.field[-1].type_name = entry.name


def _enum(tokens: _Tokens, enum: EnumDescriptorProto) -> None:
    enum.name = next(tokens)
    tokens.skip("{")
    for name in tokens.until("}"):
        tokens.skip("=")
        enum.value.add(name=name, number=int(next(tokens)))
        tokens.skip(";")
