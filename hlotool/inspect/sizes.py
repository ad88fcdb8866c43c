"""How many bytes values take in memory. XLA: shape_util.cc, CpuExecutable::ShapeSizeBytes."""

from __future__ import annotations

from hlotool.ir.types import ArrayShape, BufferShape, OpaqueShape, Shape, TupleShape, leaves

_POINTER = 8
#: Of a dynamic dimension's size, kept behind the elements for each dimension.
_DIMENSION = 4


def array_bytes(shape: ArrayShape) -> int:
    """Bytes of one array: packed where its layout says so, at the bound of its dynamic dimensions."""
    if shape.layout is not None and shape.layout.element_bits:
        return -(-shape.size * shape.layout.element_bits // 8)
    return shape.byte_size


def table_bytes(shape: Shape) -> int:
    """Bytes of the value itself; of a tuple that is its table of pointers, not what they point to."""
    if isinstance(shape, ArrayShape):
        return array_bytes(shape) + (_DIMENSION * shape.rank if shape.is_dynamic else 0)
    if isinstance(shape, TupleShape):
        return _POINTER * len(shape.elements)
    if isinstance(shape, BufferShape):
        return array_bytes(shape.array)
    return _POINTER if isinstance(shape, OpaqueShape) else 0


def total_bytes(shape: Shape) -> int:
    """Bytes of the value and, where it is a tuple, of everything in it."""
    return sum(table_bytes(leaf) for _, leaf in leaves(shape))
