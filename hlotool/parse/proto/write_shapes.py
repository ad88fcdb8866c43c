"""Shapes, layouts and literals of the IR as ShapeProto, LayoutProto and LiteralProto.

A shape without layout gets the row-major one that its text means: XLA's text parser does the same.
"""

from __future__ import annotations

import numpy as np

from hlotool.ir.attributes import EntryLayout
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.literal import Literal
from hlotool.ir.types import (
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    Layout,
    OpaqueShape,
    Shape,
    TokenShape,
    TupleShape,
)
from hlotool.parse.proto.literals import NUMBER_FIELDS
from hlotool.parse.proto.schema import Message, enum_numbers
from hlotool.parse.proto.shapes import UNBOUNDED_SIZE


def write_shape(proto: Message, shape: Shape) -> None:
    """Fill a ShapeProto."""
    types = enum_numbers("PrimitiveType")
    if isinstance(shape, TupleShape):
        proto.element_type = types["TUPLE"]
        for element in shape.elements:
            write_shape(proto.tuple_shapes.add(), element)
    elif isinstance(shape, TokenShape):
        proto.element_type = types["TOKEN"]
    elif isinstance(shape, OpaqueShape):
        proto.element_type = types["OPAQUE_TYPE"]
    elif isinstance(shape, BufferShape):
        proto.element_type = types["BUFFER"]
        write_shape(proto.tuple_shapes.add(), shape.array)
    else:
        _write_array(proto, shape)


def _write_array(proto: Message, shape: ArrayShape) -> None:
    proto.element_type = enum_numbers("PrimitiveType")[shape.element_type.value.upper()]
    proto.dimensions.extend(UNBOUNDED_SIZE if size == UNBOUNDED else size for size in shape.dims)
    proto.is_dynamic_dimension.extend(map(shape.is_dynamic_dimension, range(shape.rank)))
    _write_layout(proto.layout, shape.layout_or_default)


def _write_layout(proto: Message, layout: Layout) -> None:
    types = enum_numbers("PrimitiveType")
    proto.minor_to_major.extend(layout.minor_to_major)
    for tile in layout.tiles:
        proto.tiles.add().dimensions.extend(tile)
    proto.tail_padding_alignment_in_elements = layout.tail_padding_alignment
    if layout.index_type:
        proto.index_primitive_type = types[layout.index_type.upper()]
    if layout.pointer_type:
        proto.pointer_primitive_type = types[layout.pointer_type.upper()]
    proto.element_size_in_bits = layout.element_bits
    proto.memory_space = layout.memory_space
    for split in layout.split_configs:
        proto.split_configs.add(dimension=split.dimension, split_indices=split.indices)
    if layout.physical_shape is not None:
        write_shape(proto.physical_shape, layout.physical_shape)
    proto.dynamic_shape_metadata_prefix_bytes = layout.metadata_prefix_bytes
    proto.SetInParent()


def write_program_shape(proto: Message, layout: EntryLayout, names: tuple[str, ...] = ()) -> None:
    """Fill a ProgramShapeProto."""
    for parameter in layout.parameters:
        write_shape(proto.parameters.add(), parameter)
    write_shape(proto.result, layout.result)
    proto.parameter_names.extend(names)


def write_literal(proto: Message, literal: Literal) -> None:
    """Fill a LiteralProto; an elided value leaves it without values, as XLA does."""
    write_shape(proto.shape, literal.shape)
    if isinstance(literal.value, tuple):
        for element in literal.value:
            write_literal(proto.tuple_literals.add(), element)
    elif literal.value is not None and isinstance(literal.shape, ArrayShape):
        _write_values(proto, literal.shape, literal.array)


def _write_values(proto: Message, shape: ArrayShape, array: Array) -> None:
    if shape.is_dynamic:
        proto.dynamic_sizes.extend(array.shape)
        array = np.pad(array, [(0, bound - size) for bound, size in zip(shape.dims, array.shape)])
    flat = _in_memory_order(array, shape)
    field = NUMBER_FIELDS.get(shape.element_type)
    if field is None:
        narrow = shape.element_type.bits < 8
        stored = flat.view(np.uint8) if narrow else flat.astype(flat.dtype.newbyteorder("<"))
        setattr(proto, f"{shape.element_type}s", stored.tobytes())
    elif shape.element_type.is_complex:
        getattr(proto, field).extend(flat.view(dtype_of(shape.element_type.real_part)).tolist())
    else:
        getattr(proto, field).extend(flat.tolist())


def _in_memory_order(array: Array, shape: ArrayShape) -> Array:
    """The elements as they lie in memory."""
    order = shape.minor_to_major[::-1]
    return np.ascontiguousarray(array.transpose(order)).reshape(-1)
