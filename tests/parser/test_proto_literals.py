"""Literals of protos: every element type, every layout, packed and not."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from support.xla import oracle

from hlotool.errors import ProtoError
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.printed_literals import literal_text
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.parser.proto.module import parse_module_proto
from hlotool.parser.proto.schema import enum_names, message_class
from hlotool.parser.proto.values import deserialize_literal, read_literal

Array = npt.NDArray[Any]
TYPES = [pytest.param(t, id=str(t)) for t in ElementType]
NUMBERS = {name: number for number, name in enum_names("PrimitiveType").items()}


def sample(kind: ElementType, dims: tuple[int, ...]) -> Array:
    """Values that differ from their neighbours, as far as the type allows."""
    size = int(np.prod(dims))
    if kind is ElementType.PRED:
        values: Array = np.arange(size) % 3 == 0
    elif kind.is_complex:
        values = np.arange(size) - 1j * np.arange(size) ** 2
    elif kind.is_integer:
        low = -(1 << (kind.bits - 1)) if kind.is_signed else 0
        values = np.arange(size) * 5 % (1 << min(kind.bits, 7)) + max(low, -64)
    elif kind is ElementType.F8E8M0FNU:
        values = 2.0 ** (np.arange(size) % 5)
    else:
        values = np.array([0.5, 1, 1.5, 2, 3, 4, 6])[np.arange(size) % 7]
    return values.astype(dtype_of(kind)).reshape(dims)


def shape_proto(kind: ElementType, dims: tuple[int, ...], order: tuple[int, ...]) -> Any:
    proto = message_class("ShapeProto")(element_type=NUMBERS[str(kind).upper()], dimensions=dims)
    proto.layout.minor_to_major.extend(order)
    return proto


def in_memory(array: Array, order: tuple[int, ...]) -> Array:
    """The elements in the order of a layout."""
    return np.ascontiguousarray(array.transpose(order[::-1])).reshape(-1)


def as_bytes(flat: Array) -> bytes:
    """One byte at least per element, little-endian."""
    return flat.astype(flat.dtype.newbyteorder("<")).tobytes()


@pytest.mark.xla
@pytest.mark.parametrize("kind", [t for t in ElementType if t.value_bits != 6], ids=str)  # XLA dies of f6
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_constant_of_xla(kind: ElementType, order: tuple[int, ...]) -> None:
    array = sample(kind, (2, 3, 4))
    shape = f"{kind}[2,3,4]{{{','.join(map(str, order))}}}"
    literal = Literal(ArrayShape(kind, (2, 3, 4)), array)
    text = f"HloModule m\n\nENTRY %e {{\n  ROOT %c = {shape} constant({literal_text(literal)})\n}}\n"
    module = parse_module_proto(oracle().proto(text))
    read = module.entry.root.literal
    assert read is not None
    assert read.array.dtype == array.dtype
    assert read.array.tobytes() == array.tobytes()
    assert str(module.entry.root.shape) == shape


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_serialized_literals(kind: ElementType, order: tuple[int, ...]) -> None:
    array = sample(kind, (3, 5))
    flat = in_memory(array, order)
    data = _packed(flat, kind.bits) if kind.bits < 8 else as_bytes(flat)
    shape = shape_proto(kind, (3, 5), order).SerializeToString()
    read = deserialize_literal(len(shape).to_bytes(8, "little") + shape + data)
    assert read.array.dtype == array.dtype
    assert read.array.tobytes() == array.tobytes()


def _packed(flat: Array, bits: int) -> bytes:
    """Several elements to a byte, the first one lowest."""
    raw = [int.from_bytes(element.tobytes(), "little") & ((1 << bits) - 1) for element in flat]
    per_byte = 8 // bits
    raw += [0] * (-len(raw) % per_byte)
    return bytes(
        sum(value << (i * bits) for i, value in enumerate(raw[at : at + per_byte]))
        for at in range(0, len(raw), per_byte)
    )


def test_upper_bits_of_narrow_elements_do_not_matter() -> None:
    proto = message_class("LiteralProto")(shape=shape_proto(ElementType.S4, (4,), (0,)))
    proto.s4s = bytes([0x0F, 0xFF, 0x07, 0x38])
    assert read_literal(proto).array.astype(int).tolist() == [-1, -1, 7, -8]
    proto = message_class("LiteralProto")(shape=shape_proto(ElementType.F4E2M1FN, (2,), (0,)))
    proto.f4e2m1fns = bytes([0xF2, 0x02])
    assert read_literal(proto).array.astype(float).tolist() == [1.0, 1.0]
    proto = message_class("LiteralProto")(shape=shape_proto(ElementType.F6E2M3FN, (2,), (0,)))
    proto.f6e2m3fns = bytes([0xC8, 0x08])
    assert read_literal(proto).array.astype(float).tolist() == [1.0, 1.0]


def test_tuples_and_tokens() -> None:
    shape = message_class("ShapeProto")(element_type=NUMBERS["TUPLE"])
    shape.tuple_shapes.append(shape_proto(ElementType.S32, (2,), (0,)))
    shape.tuple_shapes.add(element_type=NUMBERS["TOKEN"])
    proto = message_class("LiteralProto")(shape=shape)
    proto.tuple_literals.add(s32s=[4, 5])
    proto.tuple_literals.add()
    read = read_literal(proto)
    assert read.elements[0].array.tolist() == [4, 5]
    assert read.elements[1].value is None
    assert not read.has_elided
    del proto.tuple_literals[1]
    with pytest.raises(ProtoError, match="has 1 parts"):
        read_literal(proto)


def test_a_literal_without_values_is_elided_not_zero() -> None:
    literal = read_literal(message_class("LiteralProto")(shape=shape_proto(ElementType.F32, (3,), (0,))))
    assert literal.elided
    assert literal.value is None


def test_an_empty_array_has_no_values_and_is_whole() -> None:
    literal = read_literal(message_class("LiteralProto")(shape=shape_proto(ElementType.F32, (0, 3), (1, 0))))
    assert not literal.elided
    assert literal.array.shape == (0, 3)


@pytest.mark.parametrize("field", [{"f32s": [1.0, 2.0]}, {"f32s": [1.0] * 4}])
def test_too_few_or_too_many_values_are_refused(field: dict[str, list[float]]) -> None:
    proto = message_class("LiteralProto")(shape=shape_proto(ElementType.F32, (3,), (0,)), **field)
    with pytest.raises(ProtoError, match=r"f32\[3\]\{0\} has [24] values"):
        read_literal(proto)


def test_dynamic_sizes_cut_the_array() -> None:
    shape = shape_proto(ElementType.S32, (2, 3), (1, 0))
    shape.is_dynamic_dimension.extend([False, True])
    proto = message_class("LiteralProto")(shape=shape, s32s=range(6), dynamic_sizes=[2, 2])
    assert read_literal(proto).array.tolist() == [[0, 1], [3, 4]]
    content = shape.SerializeToString()
    data = np.array([2, 2], "<i4").tobytes() + np.arange(6, dtype="<i4").tobytes()
    read = deserialize_literal(len(content).to_bytes(8, "little") + content + data)
    assert read.array.tolist() == [[0, 1], [3, 4]]


@pytest.mark.parametrize("change", [-1, 1])
def test_serialized_literals_of_wrong_length_are_refused(change: int) -> None:
    shape = shape_proto(ElementType.BF16, (3,), (0,)).SerializeToString()
    data = np.ones(3, ml_dtypes.bfloat16).tobytes()
    data = data[:change] if change < 0 else data + bytes(change)
    with pytest.raises(ProtoError, match="byte"):
        deserialize_literal(len(shape).to_bytes(8, "little") + shape + data)


def test_a_layout_that_is_no_permutation_is_refused() -> None:
    with pytest.raises(ProtoError, match="layout"):
        read_literal(message_class("LiteralProto")(shape=shape_proto(ElementType.F32, (3, 2), (0, 0))))
