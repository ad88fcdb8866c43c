"""Readers of single fields of HloInstructionProto, for attributes that lie in one field.

A reader returns None where HLO text would not print the attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlotool.ir.attributes import AttributeValue
from hlotool.ir.module import Computation, Instruction
from hlotool.parse.proto.metadata import as_text
from hlotool.parse.proto.schema import Message, enum_names


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


Reader: TypeAlias = "Callable[[Context], AttributeValue | None]"


def flag(field: str) -> Reader:
    """A truth value that text shows only when it is true."""
    return lambda c: True if getattr(c.proto, field) else None


def number(field: str) -> Reader:
    """A number that text always shows."""
    return lambda c: int(getattr(c.proto, field))


def count(field: str) -> Reader:
    """A group count, which text shows unless it is 1; protos before its invention say 0."""

    def read(context: Context) -> int | None:
        groups = int(getattr(context.proto, field))
        return groups if groups > 1 else None

    return read


def ints(*path: str) -> Reader:
    """A list of numbers that text always shows."""
    return lambda c: tuple(_at(c.proto, path))


def some_ints(*path: str) -> Reader:
    """A list of numbers that text shows unless it is empty."""
    return lambda c: tuple(_at(c.proto, path)) or None


def _at(message: Message, path: Sequence[str]) -> Message:
    for field in path:
        message = getattr(message, field)
    return message


def enum(field: str, enum: str, hidden: str = "", drop: str = "", *, lower: bool = False) -> Reader:
    """The name of an enumeration's value, without the prefix `drop`; None for the value `hidden`."""

    def read(context: Context) -> str | None:
        number = _at(context.proto, field.split("."))
        name = enum_names(enum).get(number, str(number))
        if name == hidden:
            return None
        shown = name.removeprefix(drop)
        return shown.lower() if lower else shown

    return read


def called(index: int) -> Reader:
    """One of the computations that the instruction calls."""
    return lambda c: c.called[index] if index < len(c.called) else None


def string(field: str) -> Reader:
    """Text that is shown unless it is empty."""
    return lambda c: as_text(getattr(c.proto, field)) or None
