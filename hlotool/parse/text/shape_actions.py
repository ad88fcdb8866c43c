"""Grammar actions for shapes and layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from hlotool.grammar import Token
from hlotool.ir.types import (
    COMBINE,
    ELEMENT_TYPES,
    OPAQUE,
    TOKEN,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    Layout,
    Shape,
    SplitConfig,
    TupleShape,
)
from hlotool.parse.text.syntax import TextError
from hlotool.parse.text.tokens import Action, integer, integers, of_all, of_first

#: The parts after the colon of a layout, in the order that XLA demands: that of the fields.
_LAYOUT_ORDER = ("dim_levels", *(field.name for field in fields(Layout)))


def _part(name: str, value: Callable[[Token], object]) -> Action:
    """The action for a part of a layout that is one token in parentheses."""
    return of_all(lambda parts: (name, value(parts[1])))


class ShapeActions:
    """Shapes and layouts.

    Args:
        strict: reject what XLA's parser rejects although hlotool understands it.
    """

    def __init__(self, strict: bool) -> None:
        self.strict = strict

    def dimension(self, children: list[Token]) -> tuple[int, bool]:
        size = integer(children[0])
        if size < 0:
            raise TextError(
                f"a dimension cannot be negative, and this is {children[0]}", children[0].start_pos
            )
        return size, False

    def bounded_dimension(self, children: list[Token]) -> tuple[int, bool]:
        return self.dimension(children[1:])[0], True

    unbounded_dimension = of_all(lambda _: (UNBOUNDED, True))

    def array_shape(self, children: list[Any]) -> Shape:
        type_token: Token = children[0]
        layout = children.pop() if isinstance(children[-1], Layout) else None
        dimensions = children[1:]
        if type_token in ("token", "opaque"):
            if dimensions or layout is not None:
                raise TextError(f"{type_token}[] takes neither dimensions nor a layout", type_token.start_pos)
            return TOKEN if type_token == "token" else OPAQUE
        sizes = tuple(size for size, _ in dimensions)
        dynamic = tuple(flag for _, flag in dimensions)
        if layout is not None and len(layout.minor_to_major) != len(sizes):
            raise TextError(
                f"the layout has {len(layout.minor_to_major)} dimensions, the shape {len(sizes)}",
                type_token.start_pos,
            )
        return ArrayShape(ELEMENT_TYPES[type_token], sizes, dynamic if any(dynamic) else (), layout)

    tuple_shape = of_all(TupleShape)

    def buffer_shape(self, children: list[Any]) -> BufferShape:
        if not isinstance(children[1], ArrayShape):
            raise TextError(f"a buffer holds an array, not {children[1]}", children[0].start_pos)
        return BufferShape(children[1])

    def layout(self, children: list[Any]) -> Layout:
        brace, minor_to_major, *properties = children
        names = [name for name, _ in properties]
        if names != sorted(set(names), key=_LAYOUT_ORDER.index):
            raise TextError("parts of a layout repeat or are out of order", brace.start_pos)
        if self.strict and "physical_shape" in names:
            raise TextError("XLA no longer takes a physical shape P(…) in a layout", brace.start_pos)
        return Layout(minor_to_major, **{name: value for name, value in properties if name != "dim_levels"})

    minor_to_major = of_all(integers)
    dim_level_types = of_all(lambda levels: ("dim_levels", levels), skipped=1)
    tiles = of_all(lambda tiles: ("tiles", tiles), skipped=1)
    tile = of_all(tuple)
    tile_size = of_first(lambda size: COMBINE if size == "*" else integer(size))
    tail_padding = _part("tail_padding_alignment", integer)
    index_type = _part("index_type", str)
    pointer_type = _part("pointer_type", str)
    element_bits = _part("element_bits", integer)
    memory_space = _part("memory_space", integer)

    physical_shape = of_all(lambda parts: ("physical_shape", parts[1]))
    metadata_prefix = _part("metadata_prefix_bytes", integer)
    split_configs = of_all(lambda configs: ("split_configs", configs), skipped=1)

    def split_config(self, children: list[Token]) -> SplitConfig:
        dimension, *indices = integers(children)
        return SplitConfig(dimension, tuple(indices))
