"""Operands of instructions: random ones, and all pairs of corners."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

COUNT = 512
MODES = ("rn", "rz", "rm", "rp")
DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def integer_operands(bits: int, number: int, seed: int = 0, signed: bool = False) -> list[Any]:
    """Random ones of all sizes, and the corners, in all combinations of the first ones."""
    random = np.random.default_rng((bits, number, seed))
    corners = [0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 31, 32, 63, 64]
    arrays = []
    for place in range(number):
        shifts = random.integers(0, bits, COUNT).astype(np.uint64)
        values = random.integers(0, 1 << 64, COUNT, dtype=np.uint64) >> np.uint64(64 - bits) >> shifts
        for at in range(100):
            values[at] = corners[(at // 10 ** (place % 2)) % 10] % (1 << bits)
        arrays.append(values.astype(np.dtype(f"u{bits // 8}")))
    return [array.view(np.dtype(f"i{bits // 8}")) if signed else array for array in arrays]


def signed_of(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def float_operands(name: str, number: int, seed: int = 0) -> list[Any]:
    """Floats near to each other in size, so that sums round; some of all sizes, some special."""
    random = np.random.default_rng((number, seed))
    kind = DTYPES[name]
    width = np.dtype(kind).itemsize
    arrays = []
    for place in range(number):
        values = (random.standard_normal(COUNT) * 2.0 ** random.integers(-12, 12, COUNT)).astype(kind)
        patterns = (
            random.integers(0, 1 << 64, COUNT, dtype=np.uint64).astype(np.dtype(f"u{width}")).view(kind)
        )
        values[::3] = patterns[::3]
        limits = ml_dtypes.finfo(kind)
        corners = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
        corners += [float(limits.max), float(limits.tiny), -float(limits.smallest_subnormal)]
        for at in range(100):
            values[at] = corners[at // 10 ** (place % 2) % 10]
        arrays.append(values)
    return arrays


def bits(values: Any) -> Any:
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))
