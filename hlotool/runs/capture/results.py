"""The result in the file of an execution, without its program and its arguments.

XLA: hlo.proto, HloSnapshot.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping

from hlotool.ir.arrays import Array, flatten, from_literal
from hlotool.ir.types import ArrayShape, ShapeIndex, TupleShape
from hlotool.parser.proto.schema import decode, fields
from hlotool.parser.proto.values import read_literal

#: Numbers of fields of an HloSnapshot; XLA writes the name of the platform last.
_RESULT, _PLATFORM = 3, 4


def float_outputs(path: str, is_still: bool) -> Mapping[ShapeIndex, Array] | None:
    """The arrays of floats in the result, real or complex; None where XLA has saved no result.

    Args:
        path: of the execution.
        is_still: nothing has changed about the file for a while: it need not end with the last field.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not complete.
        ProtoError: the result does not fit its shape.
    """
    found = parts(path)
    if _PLATFORM not in found and not is_still:
        raise ValueError(f"{path}: its end is missing")
    if _RESULT not in found:
        return None
    start, end = found[_RESULT]
    with open(path, "rb") as file:
        file.seek(start)
        literal = read_literal(decode("LiteralProto", file.read(end - start), path))
    if literal.shape == TupleShape(()) or literal.has_elided:  # what XLA writes where it gave up copying it
        return None
    leaves = flatten(literal.shape, from_literal(literal))
    return {
        index: array
        for index, shape, array in leaves
        if isinstance(shape, ArrayShape) and shape.element_type.is_inexact
    }


def parts(path: str) -> dict[int, tuple[int, int]]:
    """Where the fields of the proto in a file stand, by their numbers; of repeated ones the last.

    Raises:
        OSError: it cannot be read.
        ValueError: it is cut short, or empty.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return dict(fields(content, 0, len(content)))
