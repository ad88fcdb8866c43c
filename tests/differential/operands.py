"""Random values of every element type: corners, small numbers, numbers of all magnitudes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from support.differential import Array, random_array
from support.elementwise import corner_values

from hlotool.ir.dtypes import DTYPES
from hlotool.ir.types import ELEMENT_TYPES

Rng: TypeAlias = np.random.Generator

SIGNED = ("s2", "s4", "s8", "s16", "s32", "s64")
UNSIGNED = ("u2", "u4", "u8", "u16", "u32", "u64")
INTEGERS = (*SIGNED, *UNSIGNED)
F8 = ("f8e3m4", "f8e4m3", "f8e4m3fn", "f8e4m3fnuz", "f8e4m3b11fnuz", "f8e5m2", "f8e5m2fnuz")
NARROW = ("f4e2m1fn", *F8, "f8e8m0fnu")
#: The floats that programs compute with.
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
ALL = ("pred", *INTEGERS, *NARROW, *FLOATS, *COMPLEX)


@np.errstate(all="ignore")
def values(
    rng: Rng, kind: str, dims: tuple[int, ...], *, corners: float = 0.3, limit: float = 0, spread: float = 3
) -> Array:
    """An array of element type `kind`.

    Args:
        rng: source of randomness.
        kind: element type.
        dims: sizes.
        corners: share of elements that are corner values (NaN, infinities, limits, zeros).
        limit: integers below this magnitude only; 0 for their whole range.
        spread: floats are normally distributed times 10 to the power of up to this.
    """
    if ELEMENT_TYPES[kind].is_inexact:
        scale = 10.0 ** rng.uniform(-spread, spread, dims)
        wide = random_array(rng, "c128" if ELEMENT_TYPES[kind].is_complex else "f64", dims) * scale
        drawn = rounded(np.asarray(wide), kind)
    else:
        drawn = np.asarray(random_array(rng, kind, dims, int(limit)))
    special = corner_values(kind)
    if not corners or not drawn.size or limit:
        return drawn
    chosen = special[rng.integers(0, len(special), drawn.shape)]
    return np.asarray(np.where(rng.random(drawn.shape) < corners, chosen, drawn))


def rounded(wide: Array, kind: str) -> Array:
    """f64 values in another type, by way of f32 for the narrow ones."""
    dtype = DTYPES[ELEMENT_TYPES[kind]]
    return (
        wide.astype(np.float32).astype(dtype) if ELEMENT_TYPES[kind].is_narrow_float else wide.astype(dtype)
    )
