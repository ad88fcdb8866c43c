"""LiteralProto, read and written, and the raw form that XLA uses for literals too large for a proto, read.

XLA: literal.cc (WriteToProto: the buffer as it lies in memory, in the order of the literal's own layout,
types below 8 bits one per byte), literal.h (Serialize: the same, types below 8 bits packed).
"""

from __future__ import annotations

import math
from collections.abc import Sized
from typing import Any

import numpy as np

from hlotool.errors import ProtoError
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.literal import Literal
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.parse.proto.schema import Message, decode
from hlotool.parse.proto.shapes import read_shape, write_shape

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
    if element_type.bits >= 8:
        return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False)
    return _narrow(np.frombuffer(content, np.uint8), element_type)


def _narrow(raw: Array, element_type: ElementType) -> Array:
    """Elements of a type below 8 bits from the low bits of `raw` (uint8)."""
    dtype = dtype_of(element_type)
    low = raw & np.uint8((1 << element_type.bits) - 1)
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
