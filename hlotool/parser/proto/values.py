"""Shapes, layouts and literals of protos as those of the IR, and the other way round.

A shape without layout is written with the row-major one that its text means: XLA's text parser does the
same. Literals too large for a proto, in XLA's raw form, are read only.

XLA: literal.cc (WriteToProto: the buffer as it lies in memory, in the order of the literal's own layout,
types below 8 bits one per byte), literal.h (Serialize: the same, types below 8 bits packed).
"""

from __future__ import annotations

import math
from collections.abc import Sized
from typing import Any

import numpy as np

from hlotool.errors import ProtoError
from hlotool.ir.arrays import Array, Literal, dtype_of
from hlotool.ir.attributes import EntryLayout
from hlotool.ir.types import (
    ELEMENT_TYPES,
    OPAQUE,
    TOKEN,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    ElementType,
    Layout,
    OpaqueShape,
    Shape,
    SplitConfig,
    TokenShape,
    TupleShape,
)
from hlotool.parser.proto.schema import Message, decode, enum_names, enum_numbers

#: Size of a dimension of unknown and unbounded size (C++: Shape::kUnboundedSize).
UNBOUNDED_SIZE = -(2**63)


def read_shape(proto: Message) -> Shape:
    """The shape that a ShapeProto describes; raises ProtoError for an element type that is not known."""
    name = type_name(proto.element_type)
    if name == "tuple":
        return TupleShape(tuple(map(read_shape, proto.tuple_shapes)))
    if name == "token":
        return TOKEN
    if name == "opaque_type":
        return OPAQUE
    if name == "buffer":
        return BufferShape(_read_array(proto.tuple_shapes[0]))
    return _read_array(proto)


def read_program_shape(proto: Message) -> EntryLayout:
    """Parameters and result of a ProgramShapeProto."""
    return EntryLayout(tuple(map(read_shape, proto.parameters)), read_shape(proto.result))


def type_name(number: int) -> str:
    """Name in HLO text of a value of PrimitiveType: `f32`, `tuple`."""
    return enum_names("PrimitiveType").get(number, f"type {number}").lower()


def _element_type(number: int) -> ElementType:
    name = type_name(number)
    if name not in ELEMENT_TYPES:
        raise ProtoError(f"element type {name} is not known")
    return ELEMENT_TYPES[name]


def _read_array(proto: Message) -> ArrayShape:
    dims = tuple(UNBOUNDED if size == UNBOUNDED_SIZE else size for size in proto.dimensions)
    dynamic = tuple(proto.is_dynamic_dimension)
    if dynamic and len(dynamic) != len(dims):
        raise ProtoError(f"a shape has {len(dims)} dimensions but {len(dynamic)} dynamic flags")
    layout = _read_layout(proto.layout) if proto.HasField("layout") else None
    if not dims and layout is not None and layout.is_plain:
        layout = None  # as in text, where a scalar shows a layout only if there is something to say
    if layout is not None and sorted(layout.minor_to_major) != list(range(len(dims))):
        raise ProtoError(f"a shape has {len(dims)} dimensions but the layout {layout}")
    return ArrayShape(_element_type(proto.element_type), dims, dynamic if any(dynamic) else (), layout)


def _read_layout(proto: Message) -> Layout:
    return Layout(
        minor_to_major=tuple(proto.minor_to_major),
        tiles=tuple(tuple(tile.dimensions) for tile in proto.tiles),
        tail_padding_alignment=proto.tail_padding_alignment_in_elements or 1,
        index_type=_pointer_type(proto.index_primitive_type),
        pointer_type=_pointer_type(proto.pointer_primitive_type),
        element_bits=proto.element_size_in_bits,
        memory_space=proto.memory_space,
        split_configs=tuple(SplitConfig(c.dimension, tuple(c.split_indices)) for c in proto.split_configs),
        physical_shape=read_shape(proto.physical_shape) if proto.HasField("physical_shape") else None,
        metadata_prefix_bytes=proto.dynamic_shape_metadata_prefix_bytes,
    )


def _pointer_type(number: int) -> str | None:
    return type_name(number) if number else None


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


#: Types with a repeated number field; all others are stored as bytes.
_NUMBER_FIELDS = {
    ElementType.PRED: "preds",
    ElementType.S32: "s32s",
    ElementType.S64: "s64s",
    ElementType.U32: "u32s",
    ElementType.U64: "u64s",
    ElementType.F32: "f32s",
    ElementType.F64: "f64s",
    ElementType.C64: "c64s",
    ElementType.C128: "c128s",
}


def read_literal(proto: Message) -> Literal:
    """The literal of a LiteralProto.

    A proto without values, as XLA leaves it in programs kept for memory analysis, becomes an elided literal.

    Raises:
        ProtoError: the values do not fit the shape.
    """
    return _read(proto, read_shape(proto.shape))


def _read(proto: Message, shape: Shape) -> Literal:
    if isinstance(shape, TupleShape):
        if len(proto.tuple_literals) != len(shape.elements):
            raise ProtoError(f"a literal of shape {shape} has {len(proto.tuple_literals)} parts")
        return Literal(shape, tuple(map(_read, proto.tuple_literals, shape.elements)))
    if not isinstance(shape, ArrayShape):
        return Literal(shape, None)
    values = getattr(proto, _NUMBER_FIELDS.get(shape.element_type, f"{shape.element_type}s"))
    if not values and shape.size:
        return Literal(shape, None, elided=True)
    flat = _flat(values, shape)
    return Literal(shape, _arranged(flat, shape, tuple(proto.dynamic_sizes)))


def _flat(values: Any, shape: ArrayShape) -> Array:
    """The values in memory order."""
    dtype = dtype_of(shape.element_type)
    if isinstance(values, bytes):
        _check_size(values, shape.size * dtype.itemsize, shape)
        return _from_bytes(values, shape.element_type)
    if shape.element_type.is_complex:
        _check_size(values, 2 * shape.size, shape)
        return np.fromiter(values, dtype_of(shape.element_type.real_part), len(values)).view(dtype)
    _check_size(values, shape.size, shape)
    return np.fromiter(values, dtype, len(values))


def _check_size(values: Sized, expected: int, shape: ArrayShape) -> None:
    if len(values) != expected:
        raise ProtoError(f"a literal of shape {shape} has {len(values)} values or bytes, not {expected}")


def _from_bytes(content: bytes, element_type: ElementType) -> Array:
    """Little-endian elements; types below 8 bits one per byte, whatever their upper bits say."""
    dtype = dtype_of(element_type)
    if element_type.value_bits >= 8:
        return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False)
    return _narrow(np.frombuffer(content, np.uint8), element_type)


def _narrow(raw: Array, element_type: ElementType) -> Array:
    """Elements of a type below 8 bits from the low bits of `raw` (uint8)."""
    dtype = dtype_of(element_type)
    low = raw & np.uint8((1 << element_type.value_bits) - 1)
    if element_type.is_signed:
        sign = np.int8(1 << (element_type.bits - 1))
        return ((low.astype(np.int8) ^ sign) - sign).astype(dtype)
    return low.view(dtype) if element_type.is_floating else low.astype(dtype)


def _arranged(flat: Array, shape: ArrayShape, sizes: tuple[int, ...]) -> Array:
    """The logical array whose memory is `flat`; `sizes` are the true extents of dynamic dimensions."""
    order = shape.minor_to_major[::-1]
    memory = flat.reshape([shape.dims[d] for d in order])
    array = memory.transpose([order.index(d) for d in range(shape.rank)])
    if sizes and shape.is_dynamic:
        array = array[tuple(slice(size) for size in sizes)]
    return np.ascontiguousarray(array).reshape(array.shape)


def deserialize_literal(content: bytes) -> Literal:
    """The literal of XLA's own serialization: shape size, shape, then each array's elements.

    Raises:
        ProtoError: too few or too many bytes, or a shape that cannot be serialized.
    """
    reader = _Bytes(content)
    shape = read_shape(decode("ShapeProto", reader.take(int.from_bytes(reader.take(8), "little")), "literal"))
    literal = _deserialize(reader, shape)
    if reader.rest:
        raise ProtoError(f"a literal of shape {shape} is followed by {reader.rest} bytes more")
    return literal


class _Bytes:
    """Bytes read from front to back."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    @property
    def rest(self) -> int:
        return len(self._content) - self._at

    def take(self, count: int) -> bytes:
        if count > self.rest:
            raise ProtoError(f"a literal ends {count - self.rest} bytes too early")
        self._at += count
        return self._content[self._at - count : self._at]


def _deserialize(reader: _Bytes, shape: Shape) -> Literal:
    if isinstance(shape, TupleShape):
        return Literal(shape, tuple(_deserialize(reader, element) for element in shape.elements))
    if not isinstance(shape, ArrayShape):
        raise ProtoError(f"a literal of shape {shape} cannot be serialized")
    sizes: tuple[int, ...] = ()
    if shape.is_dynamic:
        sizes = tuple(np.frombuffer(reader.take(4 * shape.rank), "<i4").tolist())
    bits = shape.element_type.bits
    content = reader.take(math.ceil(shape.size * bits / 8))
    flat = _unpacked(content, shape) if bits < 8 else _from_bytes(content, shape.element_type)
    return Literal(shape, _arranged(flat, shape, sizes))


def _unpacked(content: bytes, shape: ArrayShape) -> Array:
    """Elements below 8 bits, several per byte, the first in the lowest bits."""
    bits = shape.element_type.bits
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    raw = np.frombuffer(content, np.uint8)[:, None] >> shifts
    return _narrow(np.ascontiguousarray(raw.reshape(-1)[: shape.size]), shape.element_type)


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
    field = _NUMBER_FIELDS.get(shape.element_type)
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
