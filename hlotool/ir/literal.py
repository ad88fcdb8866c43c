"""Literals: the values of `constant` instructions, captured arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Self, TypeAlias

from hlotool.ir.deferred import Deferrable
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ArrayShape, Shape, TupleShape


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Deferrable):
    """A value with its shape.

    Attributes:
        shape: element types, dimensions, layout as given.
        value: a C-contiguous array of the logical dimensions (the layout is not applied to it), a tuple of
            literals, or None for tokens and for elided values.
        elided: the text said `{...}`: there is a value, but not here.
    """

    shape: Shape
    value: LiteralValue
    elided: bool = False

    @classmethod
    def unread(cls, shape: Shape, decode: Callable[[str], Self], text: str) -> Self:
        """A literal whose value `decode` reads from `text` when it is first asked for; it is not elided.

        Nobody has looked at the text: where it is wrong, what `decode` raises is raised there.
        """
        made = cls.deferred(decode, text)
        object.__setattr__(made, "shape", shape)
        object.__setattr__(made, "elided", False)
        return made

    @property
    def array(self) -> Array:
        """The array of an array literal."""
        if not isinstance(self.shape, ArrayShape) or self.value is None or isinstance(self.value, tuple):
            raise TypeError(f"literal of shape {self.shape} holds no array")
        return self.value

    @property
    def elements(self) -> tuple[Literal, ...]:
        """The parts of a tuple literal."""
        if not isinstance(self.shape, TupleShape) or not isinstance(self.value, tuple):
            raise TypeError(f"literal of shape {self.shape} is not a tuple")
        return self.value

    @property
    def has_elided(self) -> bool:
        """Whether some part of the value is missing."""
        if isinstance(self.shape, TupleShape) and isinstance(self.value, tuple):
            return any(e.has_elided for e in self.value)
        return self.elided

    @property
    def key(self) -> Hashable:
        """Equal for equal bits of equal types and dimensions; elided values are taken for equal."""
        if isinstance(self.value, tuple):
            return tuple(part.key for part in self.value)
        if self.value is None:
            return "elided" if self.elided else None
        return str(self.value.dtype), self.value.shape, self.value.tobytes()


LiteralValue: TypeAlias = Array | tuple[Literal, ...] | None
