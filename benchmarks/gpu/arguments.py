"""Arguments of a case: random, the same in every run, and quick to make where they take gigabytes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from zlib import crc32

import numpy as np

from benchmarks.gpu.cases import Case, Input
from hlotool.ir.arrays import DTYPES, Array
from hlotool.ir.types import ELEMENT_TYPES

#: So many numbers are drawn, and then repeated: drawing more takes longer than all else that a case asks of
#: the host. Odd, so that no row or column repeats along with them.
_PERIOD = (1 << 20) + 7


def arguments_of(case: Case) -> list[Array]:
    """One array per parameter; zeros would be multiplied and moved faster than data is."""
    rng = np.random.default_rng(crc32(case.name.encode()))
    return [_argument(rng, each) for each in case.inputs]


def _argument(rng: np.random.Generator, each: Input) -> Array:
    kind = ELEMENT_TYPES[each.kind]
    size = int(np.prod(each.dims, dtype=np.int64))
    drawn = min(size, _PERIOD)
    if kind.is_inexact:
        return _repeated(rng.standard_normal(drawn, np.float32).astype(DTYPES[kind]), size).reshape(each.dims)
    # Indices are all different draws, since repeated ones would be found in the cache; they are few.
    return rng.integers(0, each.below, each.dims).astype(DTYPES[kind])


def _repeated(values: Array, size: int) -> Array:
    """`values` over and over, on all cores: much of the time goes into the memory's first use."""
    array = np.empty(size, values.dtype)

    def fill(start: int) -> None:
        part = array[start : start + values.size]
        part[:] = values[: part.size]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(0, size, values.size)))
    return array
