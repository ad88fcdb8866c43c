"""Where attributes lie in HloInstructionProto: the forms that many of them share, each read and written.

A reader returns None where HLO text would not print the attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from hlotool.errors import ProtoError
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.parse.proto.metadata import as_bytes, as_text
from hlotool.parse.proto.schema import Message, enum_names, enum_numbers


@dataclass(frozen=True, slots=True)
class Context:
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

    read: Callable[[Context], AttributeValue | None]
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


def count(path: str) -> Field:
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

    def read(context: Context) -> str | None:
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


def unwritten(read: Callable[[Context], AttributeValue | None]) -> Field:
    """What has no field of its own: called computations, which are written as numbers."""
    return Field(read, lambda proto, value: None)


def called(index: int) -> Field:
    """One of the computations that the instruction calls."""
    return unwritten(lambda c: c.called[index] if index < len(c.called) else None)
