"""What stands in MLIR text, before anything of HLO is made of it: operations, regions, attributes, types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hlotool.ir.types import Shape

#: Integers, floats, booleans, strings and words, tuples, dictionaries, and the classes below.
Attribute: TypeAlias = Any


#: What ends a region.
RETURNS = (
    "return", "func.return", "std.return", "stablehlo.return", "mhlo.return", "xla_hlo.return", "sdy.return",
)  # fmt: skip


class Symbol(str):
    """`@name`, without the sign."""

    __slots__ = ()


class Word(str):
    """A bare word, or the one of an enumeration: `LT` of `#stablehlo<comparison_direction LT>`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OtherType:
    """A type that is no value's of HLO: `i64` of an attribute, or one of a foreign dialect.

    Attributes:
        text: as it is written.
        position: where, of a tensor's; None of others.
    """

    text: str
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionType:
    """`(operands) -> results`."""

    operands: tuple[Type, ...]
    results: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class FutureType:
    """`!stablehlo.future<result>`: what has begun and will be a value of this shape."""

    result: Shape


Type: TypeAlias = Shape | OtherType | FunctionType | FutureType


class Dictionary(dict[str, Any]):
    """`{key = attribute}`; `text` is how it is written, with the braces."""

    __slots__ = ("text",)
    text: str


@dataclass(frozen=True, slots=True)
class Dense:
    """`dense<…> : type`; the values are read when they are needed.

    Attributes:
        text: with `dense` or `dense_resource` and the brackets.
        type: behind the colon, None where there is none.
        position: in the text.
    """

    text: str
    type: Type | None
    position: int


@dataclass(frozen=True, slots=True)
class Foreign:
    """An attribute that is kept as text: `#sdy.sharding<…>`, and whatever a dialect makes up."""

    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """A value where it is used: `%3#1` is `%3`, 1."""

    name: str
    number: int
    position: int


@dataclass(slots=True)
class Argument:
    """An argument of a block or a function."""

    name: str
    type: Type
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    position: int = 0


@dataclass(slots=True)
class Region:
    """The only block of a region: HLO has no jumps."""

    arguments: list[Argument]
    operations: list[Operation]


@dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
        name: with its dialect.
        position: of its name.
        results: names with the number of values of each.
        operands: in order.
        attributes: by name.
        regions: in order.
        operand_types: None where the text does not give one for each.
        result_types: one for each value.
        scope: the name of its location, such as `jit(f)/add`, or of the alias of one.
    """

    name: str
    position: int
    results: list[tuple[str, int]] = field(default_factory=list)
    operands: list[Name] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    operand_types: tuple[Type, ...] | None = None
    result_types: tuple[Type, ...] = ()
    scope: str = ""

    @property
    def symbol(self) -> str:
        """The name that a function or a mesh defines."""
        return str(self.attributes.get("sym_name", ""))
