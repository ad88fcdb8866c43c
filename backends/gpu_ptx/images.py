"""Arrays as they lie in the memory of a GPU: in the order of their layout, elements below 8 bits packed.

XLA: literal.cc (PackIntN: the first element has the lowest bits), layout.h (element_size_in_bits).
"""

from __future__ import annotations

import numpy as np

from hlotool.errors import Unsupported
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ArrayShape


def image_of(array: Array, shape: ArrayShape) -> bytes:
    """The bytes of an array.

    Args:
        array: of the logical dimensions, with the dtype of the shape's element type.
        shape: with its layout.

    Raises:
        Unsupported: its dimensions are dynamic, or its layout has tiles.
    """
    bits = _bits(shape)
    flat = np.ascontiguousarray(np.asarray(array).transpose(_order(shape))).reshape(-1)
    if bits == 8 * flat.dtype.itemsize and shape.element_type.bits >= 8:
        return flat.tobytes()
    small = flat.astype(np.int8).view(np.uint8) if shape.element_type.is_integer else flat.view(np.uint8)
    if bits == 8:
        return small.tobytes()
    each = 8 // bits
    padded = np.zeros(-(-small.size // each) * each, np.uint8)
    padded[: small.size] = small & np.uint8((1 << bits) - 1)
    shifted = padded.reshape(-1, each) << np.arange(0, 8, bits, dtype=np.uint8)
    packed: Array = np.bitwise_or.reduce(shifted, axis=1)
    return packed.astype(np.uint8).tobytes()


def array_in(image: bytes, shape: ArrayShape) -> Array:
    """The array whose bytes are `image`; raises as `image_of`."""
    bits, order = _bits(shape), _order(shape)
    kind = shape.element_type
    if kind.bits >= 8:
        flat = np.frombuffer(image, dtype_of(kind))
    else:
        raw = np.frombuffer(image, np.uint8)
        if bits < 8:
            raw = (raw[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)).reshape(-1)[: shape.size]
        raw = raw & np.uint8((1 << kind.bits) - 1)
        if kind.is_integer and kind.is_signed:
            sign = np.int8(1 << (kind.bits - 1))
            flat = ((raw.view(np.int8) ^ sign) - sign).astype(dtype_of(kind))
        elif kind.is_integer:
            flat = raw.astype(dtype_of(kind))
        else:
            flat = raw.view(dtype_of(kind))
    memory = flat.reshape([shape.dims[d] for d in order])
    return np.ascontiguousarray(memory.transpose([order.index(d) for d in range(shape.rank)])).reshape(
        shape.dims
    )


def _bits(shape: ArrayShape) -> int:
    """Of memory for each element."""
    layout = shape.layout_or_default
    if shape.is_dynamic or layout.tiles:
        raise Unsupported(f"an array {shape} in the memory of a GPU")
    return layout.element_bits or 8 * max(1, shape.element_type.bits // 8)


def _order(shape: ArrayShape) -> tuple[int, ...]:
    """The dimensions, the slowest first."""
    return shape.minor_to_major[::-1]
