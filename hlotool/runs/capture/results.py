"""The floats of the result in the file of an execution, without its program and its arguments.

A training step has them by the megabyte, and a run has millions of steps: what a message class would read
number by number is taken as the bytes that it is.

XLA: hlo.proto, HloSnapshot.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping

import numpy as np

from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ArrayShape, ElementType, Shape, ShapeIndex, TupleShape
from hlotool.parser.proto.schema import decode, fields
from hlotool.parser.proto.values import read_shape

#: The field of an HloSnapshot, behind the program and the arguments.
_RESULT = 3
#: Of a LiteralProto: its shape, the parts of a tuple, values by their type. All of these are packed.
_SHAPE, _PARTS = 1, 10
_VALUES = {
    ElementType.F32: 8,
    ElementType.F64: 9,
    ElementType.F16: 11,
    ElementType.C64: 12,
    ElementType.BF16: 13,
    ElementType.C128: 18,
    ElementType.F8E5M2: 19,
    ElementType.F8E4M3FN: 20,
    ElementType.F8E4M3B11FNUZ: 23,
    ElementType.F8E5M2FNUZ: 24,
    ElementType.F8E4M3FNUZ: 25,
    ElementType.F8E4M3: 28,
    ElementType.F8E3M4: 29,
    ElementType.F8E8M0FNU: 33,
}


def float_outputs(path: str, is_still: bool) -> Mapping[ShapeIndex, Array] | None:
    """The arrays of floats in the result, real or complex; None where XLA has saved no result.

    Elements are in the order of memory. Types without NaN and infinities are passed over.

    Args:
        path: of the execution.
        is_still: nothing has changed about the file for a while: what is missing does not come.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not complete, or the result does not fit its shape.
        ProtoError: its shape is none.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = dict(fields(content, 0, len(content)))
        if _RESULT not in found and not is_still:
            raise ValueError(f"{path}: the result is missing")
        if _RESULT not in found or _is_given_up(content, *found[_RESULT]):
            return None
        return dict(_leaves(content, *found[_RESULT], ()))


def _is_given_up(content: mmap.mmap, start: int, end: int) -> bool:
    """Whether it is the empty tuple that XLA writes where it could not copy the result."""
    parts = dict(fields(content, start, end))
    return _SHAPE not in parts or _shape(content, *parts[_SHAPE]) == TupleShape(())


def _shape(content: mmap.mmap, start: int, end: int) -> Shape:
    return read_shape(decode("ShapeProto", content[start:end], "the shape of a result"))


def _leaves(
    content: mmap.mmap, start: int, end: int, index: ShapeIndex
) -> Iterator[tuple[ShapeIndex, Array]]:
    """Of a LiteralProto the arrays, depth first."""
    found = list(fields(content, start, end))
    for number, part in enumerate(place for field, place in found if field == _PARTS):
        yield from _leaves(content, *part, (*index, number))
    for shape in (_shape(content, *place) for field, place in found if field == _SHAPE):
        if isinstance(shape, ArrayShape) and (values := _VALUES.get(shape.element_type)):
            raw = b"".join(content[a:b] for field, (a, b) in found if field == values)
            yield index, np.frombuffer(raw, dtype_of(shape.element_type)).reshape(shape.dims)


def is_whole(path: str) -> bool:
    """Whether a file holds a proto that is not cut short."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return bool(list(fields(content, 0, len(content))))
    except (OSError, ValueError):  # there is nothing to map in an empty file
        return False
