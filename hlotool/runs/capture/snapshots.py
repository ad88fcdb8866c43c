"""Writes an execution as XLA does: an HloSnapshot, byte by byte.

Runs in whatever Python the user's program uses: nothing is imported but the standard library, and NumPy where
JAX is.

XLA: hlo.proto, HloSnapshot; xla_data.proto, LiteralProto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

#: By the name of a dtype: number of the element type, and the field of its values in a LiteralProto.
_TYPES = {
    "bool": (1, 2), "int8": (2, 15), "int16": (3, 17), "int32": (4, 4), "int64": (5, 5), "uint8": (6, 3),
    "uint16": (7, 16), "uint32": (8, 6), "uint64": (9, 7), "float16": (10, 11), "float32": (11, 8),
    "float64": (12, 9), "bfloat16": (16, 13), "complex64": (15, 12), "complex128": (18, 18), "int4": (21, 21),
    "uint4": (22, 22), "float8_e5m2": (19, 19), "float8_e4m3": (28, 28), "float8_e4m3fn": (20, 20),
    "float8_e4m3b11fnuz": (23, 23), "float8_e3m4": (29, 29), "float8_e5m2fnuz": (24, 24),
    "float8_e4m3fnuz": (25, 25), "float8_e8m0fnu": (33, 33),
}  # fmt: skip
#: Their values are numbers of as many bytes as they need, seven bits each.
_VARIABLE = ("int32", "int64", "uint32", "uint64")
_TUPLE = 13


def is_known(dtype: object) -> bool:
    """Whether arrays of a dtype can be written."""
    return str(dtype) in _TYPES


def snapshot(
    program: bytes, arguments: Sequence[Any], results: Sequence[Any], is_tuple: bool, platform: str
) -> Iterator[bytes]:
    """The parts of the file of an execution.

    Args:
        program: an HloModuleProto.
        arguments: an array for each parameter.
        results: the arrays of the result.
        is_tuple: the result is a tuple of these.
        platform: that ran it.
    """
    yield from _field(1, b"".join(_field(1, program)))
    for argument in arguments:
        yield from _field(2, b"".join(_literal(argument)))
    parts = [b"".join(_literal(result)) for result in results]
    if is_tuple:
        shapes = b"".join(b"".join(_field(4, _shape(result))) for result in results)
        whole = [*_field(1, _number(2, _TUPLE) + shapes)]
        for part in parts:
            whole += _field(10, part)
        parts = [b"".join(whole)]
    yield from _field(3, parts[0])
    yield from _field(4, platform.encode())


def _literal(array: Any) -> Iterator[bytes]:
    name = str(array.dtype)
    yield from _field(1, _shape(array))
    yield from _field(_TYPES[name][1], _varints(array) if name in _VARIABLE else array.tobytes())


def _shape(array: Any) -> bytes:
    dims = b"".join(_number(3, size) for size in array.shape)
    return _number(2, _TYPES[str(array.dtype)][0]) + dims


def _field(number: int, content: bytes) -> Iterator[bytes]:
    yield _varint(number << 3 | 2) + _varint(len(content))
    yield content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _varints(array: Any) -> bytes:
    """Integers one after the other, negative ones as 64 bits."""
    import numpy as np

    kind = np.int64 if array.dtype.kind == "i" else np.uint64
    wide = np.ascontiguousarray(array).ravel().astype(kind).view(np.uint64)
    shifts = np.arange(0, 70, 7, dtype=np.uint64)
    left = wide[:, None] >> np.minimum(shifts, np.uint64(63))
    is_needed = left != 0
    is_needed[:, 0] = True
    groups = (left & np.uint64(127)).astype(np.uint8)
    groups[:, :-1] |= np.where(is_needed[:, 1:], np.uint8(128), np.uint8(0))
    return bytes(groups[is_needed].tobytes())


def field_of(message: bytes, number: int) -> int:
    """The value of a field that is a number, 0 where it is missing; other fields are passed over.

    Raises:
        ValueError: it is no message.
    """
    place = 0
    while place < len(message):
        key, place = _read(message, place)
        kind = key & 7
        if kind == 0:
            value, place = _read(message, place)
            if key >> 3 == number:
                return value
        elif kind == 2:
            size, place = _read(message, place)
            place += size
        else:
            place += {1: 8, 5: 4}[kind]
    return 0


def _read(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
