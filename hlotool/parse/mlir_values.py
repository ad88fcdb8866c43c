"""Values and types of MLIR text: `dense<…>` attributes and `tensor<…>` types as arrays and shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from hlotool.errors import InputError
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType

_INTEGER = re.compile(r"^(?:i|si|ui)(\d+)$")


def tensor_shape(text: str) -> ArrayShape:
    """The shape of `tensor<text>`: `64x3xf32`, `30xcomplex<f32>`, `i1`.

    Raises:
        InputError: it has unknown sizes or an element type that HLO does not have.
    """
    *dims, element = re.split(r"(?<=\d)x", text.split(",")[0])
    if not all(dim.isdigit() for dim in dims):
        raise InputError(f"MLIR: tensor<{text}> has no fixed shape")
    return ArrayShape(_element_type(element, text), tuple(map(int, dims)))


def _element_type(element: str, text: str) -> ElementType:
    names = {"i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}
    name = names.get(element, element.lower())
    if integer := _INTEGER.match(name):
        name = ("u" if name.startswith("u") else "s") + integer[1]
    if name not in ELEMENT_TYPES:
        raise InputError(f"MLIR: element type of tensor<{text}> is not known")
    return ELEMENT_TYPES[name]


def dense_values(attribute: str, shape: ArrayShape, resources: Mapping[str, str]) -> Array:
    """The array that a `dense<…>` or `dense_resource<…>` attribute of this shape holds.

    Args:
        attribute: with its angle brackets.
        shape: of the tensor.
        resources: blobs of the file, in hexadecimal.

    Raises:
        InputError: malformed, or the number of values does not fit the shape.
    """
    try:
        return _values(attribute, shape, resources)
    except (ValueError, OverflowError, MemoryError) as error:
        start = attribute[:40]
        raise InputError(f"MLIR: {start}… is no constant of shape {shape.logical_text()}: {error}") from error


def _values(attribute: str, shape: ArrayShape, resources: Mapping[str, str]) -> Array:
    kind, _, body = attribute.partition("<")
    body = body.removesuffix(">")
    if kind == "dense_resource":
        if body not in resources:
            raise InputError(f"MLIR: resource {body} is not in the file")
        return _from_bytes(bytes.fromhex(resources[body])[4:], shape)  # 4 bytes of alignment come first
    if not body:
        return np.zeros(shape.dims, dtype_of(shape.element_type))
    if body.startswith('"0x'):
        return _from_bytes(bytes.fromhex(body[3:-1]), shape)
    return _from_list(body, shape)


def _from_bytes(content: bytes, shape: ArrayShape) -> Array:
    """Little-endian elements in row-major order; i1 may be packed, eight to a byte, lowest bit first."""
    kind = shape.element_type
    dtype = dtype_of(kind)
    if kind is ElementType.PRED and len(content) == (shape.size + 7) // 8 < shape.size:
        bits = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")
        return bits[: shape.size].astype(np.bool_).reshape(shape.dims)
    if len(content) == dtype.itemsize:
        content *= shape.size
    if len(content) != shape.size * dtype.itemsize:
        raise InputError(f"MLIR: {len(content)} bytes for a constant of shape {shape.logical_text()}")
    if kind is ElementType.PRED:
        return np.frombuffer(content, np.uint8).astype(np.bool_).reshape(shape.dims)
    if kind.is_integer and kind.bits < 8:
        raw = np.frombuffer(content, np.int8 if kind.is_signed else np.uint8)
        return raw.astype(dtype).reshape(shape.dims)
    return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape.dims)


def _from_list(body: str, shape: ArrayShape) -> Array:
    """A nested list of numbers, or one number for all elements."""
    words = re.findall(r"[^\s,\[\]()]+", body)
    is_complex = shape.element_type.is_complex
    kind = shape.element_type.real_part
    values = np.array([_number(word, kind) for word in words], dtype_of(kind))
    if is_complex:
        values = values.view(dtype_of(shape.element_type))
    if len(values) == 1:
        return np.full(shape.dims, values[0], values.dtype)
    if len(values) != shape.size:
        raise InputError(f"MLIR: {len(values)} values for a constant of shape {shape.logical_text()}")
    return values.reshape(shape.dims)


def _number(word: str, kind: ElementType) -> Any:
    """One number: `true`, `-3`, `1.000000e+00`, or the bits of a float as `0x7FC00000`."""
    try:
        if kind is ElementType.PRED:
            return {"true": True, "false": False}[word]
        if kind.is_floating and word.startswith("0x"):
            return _from_bits(int(word, 16), kind)
        return float(word) if kind.is_floating else int(word, 0)
    except (KeyError, ValueError) as error:
        raise InputError(f"MLIR: {word!r} is no value of type {kind}") from error


def _from_bits(bits: int, kind: ElementType) -> Any:
    dtype = dtype_of(kind)
    return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype.newbyteorder("<"))[0]
