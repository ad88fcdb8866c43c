"""Where the elements of matrices lie in the registers of a warp, and products of them.

The places are those of "Matrix Fragments" in the PTX ISA.

Lane `l` has group `l // 4` and place `l % 4`. A register of 32 bits holds neighbouring elements, lowest
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.gpu_ptx.operations.conversions import f8_values
from hlotool.backends.gpu_ptx.rounding import narrow
from hlotool.backends.gpu_ptx.types import Values, type_of

LANES = np.arange(32)
GROUP, PLACE = LANES // 4, LANES % 4


@dataclass(frozen=True, slots=True)
class Element:
    """A type of elements: how many bits each has, and how many a register holds."""

    name: str
    bits: int
    register_bits: int

    @property
    def per_register(self) -> int:
        """Elements in a register."""
        return self.register_bits // self.bits

    def unpack(self, raw: Values) -> Values:
        """The values in registers of shape (...): f64 of shape (..., elements)."""
        if self.name == "f64":
            return raw.view(np.float64)[..., None]
        if self.name == "tf32":  # the lowest 13 bits do not count
            return (raw & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)[..., None]
        if self.bits == 4:
            nibbles = (raw[..., None] >> np.arange(0, 32, 4, dtype=np.uint32)) & np.uint32(15)
            signed = (nibbles.astype(np.int64) ^ 8) - 8 if self.name == "s4" else nibbles
            return signed.astype(np.float64)
        parts = np.ascontiguousarray(raw)[..., None].view(np.dtype(f"u{self.bits // 8}"))
        return self.values(parts)

    def values(self, raw: Values) -> Values:
        """The f64 values of single elements of 8, 16 or 32 bits."""
        if self.name in ("e4m3", "e5m2"):
            return f8_values(raw, self.name).astype(np.float64)
        if self.name == "tf32":
            return (raw & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
        return type_of(self.name).decode(raw).astype(np.float64)


#: Types of factors.
ELEMENTS = {
    element.name: element
    for element in (
        Element("f16", 16, 32),
        Element("bf16", 16, 32),
        Element("tf32", 32, 32),
        Element("f64", 64, 64),
        Element("s8", 8, 32),
        Element("u8", 8, 32),
        Element("e4m3", 8, 32),
        Element("e5m2", 8, 32),
        Element("s4", 4, 32),
        Element("u4", 4, 32),
    )
}


def left_factor(registers: Sequence[Values], element: Element, rows: int, depth: int) -> Values:
    """Matrices of shape (warps, rows, depth) from registers of shape (warps, 32): rows by group, columns by
    place.
    """
    count, blocks = element.per_register, rows // 8
    found = np.empty((registers[0].shape[0], rows, depth))
    for number, raw in enumerate(registers):
        row = GROUP + 8 * (number % blocks)
        column = PLACE * count + 4 * count * (number // blocks)
        found[:, row[:, None], column[:, None] + np.arange(count)] = element.unpack(raw)
    return found


def right_factor(registers: Sequence[Values], element: Element, depth: int) -> Values:
    """Matrices of shape (warps, depth, 8): columns by group, rows by place."""
    count = element.per_register
    found = np.empty((registers[0].shape[0], depth, 8))
    for number, raw in enumerate(registers):
        row = PLACE * count + 4 * count * number
        found[:, row[:, None] + np.arange(count), GROUP[:, None]] = element.unpack(raw)
    return found


def result_places(count: int) -> list[tuple[Any, Any]]:
    """For each of the `count` values of a lane its row and column, arrays of 32, among 16 rows and 8 × any
    columns.
    """
    return [
        (GROUP + 8 * (number // 2 % 2), 8 * (number // 4) + 2 * PLACE + number % 2) for number in range(count)
    ]


def accumulated(product: Values, start: Values, kind: str, saturates: bool) -> Values:
    """`start + product`, rounded to the type of the accumulator: s32, f64, f32, or f32 that hold f16.

    Args:
        product: exact sums of products, or nearly so, f64.
        start: the accumulator, s32 as int64, else f64.
    """
    if kind == "s32":
        total = product.astype(np.int64) + start
        if saturates:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(np.int32)
    total = product + start
    return total if kind == "f64" else narrow(total, "f16" if kind == "f16" else "f32")


def multiplied(left: Values, right: Values, start: Values, kind: str, saturates: bool, seed: int) -> Values:
    """`left @ right + start`.

    Tensor cores add exact products with at least the precision of f32, in an order that is not documented,
    and cut what is below (PTX ISA, "Matrix multiply-accumulate"). With a seed the columns are added in parts,
    each cut to f32.
    """
    if not seed or kind in ("s32", "f64"):
        return accumulated(left @ right, start, kind, saturates)
    order = np.random.default_rng(seed).permutation(left.shape[-1])
    half = max(1, left.shape[-1] // 2)
    total = start
    for part in (order[:half], order[half:]):
        if part.size:
            total = narrow(total + left[..., part] @ right[..., part, :], "f32", "rz").astype(np.float64)
    return accumulated(np.zeros(()), total, kind, saturates)
