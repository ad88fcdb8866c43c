"""How far a result is from the reference: relative L2 error, representable values between, equal bits.

Results are gigabytes, so they are read in pieces, on all cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import sqrt
from typing import TypeVar

import numpy as np

from hlotool.backends.base import Value
from hlotool.facts.float_order import ulp_distance
from hlotool.ir.arrays import DTYPES, Array
from hlotool.judge.metrics import bitwise_equal

_PIECE = 1 << 20
_KINDS = {dtype: kind for kind, dtype in DTYPES.items()}

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Distance:
    """Of a result from a reference.

    Attributes:
        relative: L2 norm of the difference over that of the reference (over 1 where that is 0), of the
            elements that are finite on both sides.
        ulps: largest number of representable values between two such elements; None for integers.
        misfits: elements of which only one side is finite, or that are different infinities.
    """

    relative: float
    ulps: int | None
    misfits: int


def leaves(value: Value) -> list[Array]:
    """The arrays of a result."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [np.asarray(value)]


def distance(expected: Sequence[Array], actual: Sequence[Array]) -> Distance:
    """The leaves of a result taken together.

    Raises:
        ValueError: the leaves differ in number, dtype or dimensions.
    """
    if same_bits(expected, actual):  # far quicker, and of large results most are
        return Distance(0.0, 0 if any(_KINDS[e.dtype].is_inexact for e in expected) else None, 0)
    leaves = [(_KINDS[e.dtype], _on_pieces(_compare, e, a)) for e, a in zip(expected, actual)]
    parts = [part for _, found in leaves for part in found]
    difference, norm, misfits = (sum(part[n] for part in parts) for n in range(3))
    ulps = [part[3] for kind, found in leaves if kind.is_inexact for part in found]
    return Distance(sqrt(difference / (norm or 1)), max(ulps, default=None), int(misfits))


def same_bits(expected: Sequence[Array], actual: Sequence[Array]) -> bool:
    """Whether two results hold the same bits, NaNs and signs of zeros included."""
    _check_alike(expected, actual)
    return all(all(_on_pieces(bitwise_equal, e, a)) for e, a in zip(expected, actual))


def _check_alike(expected: Sequence[Array], actual: Sequence[Array]) -> None:
    shapes = [[(leaf.dtype, leaf.shape) for leaf in side] for side in (expected, actual)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"results differ in type: expected {shapes[0]}, got {shapes[1]}")


def _on_pieces(work: Callable[[Array, Array], _T], a: Array, b: Array) -> list[_T]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda pair: work(*pair), _pieces(a, b)))


def _pieces(a: Array, b: Array) -> Iterator[tuple[Array, Array]]:
    flat_a, flat_b = np.ravel(a), np.ravel(b)
    for start in range(0, max(1, a.size), _PIECE):
        yield flat_a[start : start + _PIECE], flat_b[start : start + _PIECE]


def _compare(expected: Array, actual: Array) -> tuple[float, float, int, int]:
    """Squares of the difference and of the reference, summed; misfits; the most ulps between two elements."""
    kind = _KINDS[expected.dtype]
    with np.errstate(all="ignore"):
        e, a = expected.astype(np.float64), actual.astype(np.float64)
    equal = (e == a) | (np.isnan(e) & np.isnan(a))
    finite = np.isfinite(e) & np.isfinite(a)
    norm = float(np.square(e, where=finite, out=np.zeros(e.shape)).sum())
    if equal.all():
        return 0.0, norm, 0, 0
    squares = np.square(np.subtract(e, a, where=finite, out=np.zeros(e.shape)))
    ulps = np.zeros(1, np.uint64)
    if kind.is_inexact:
        ulps = np.where(finite, ulp_distance(expected, actual, kind), np.uint64(0))
    return float(squares.sum()), norm, int((~equal & ~finite).sum()), int(ulps.max())
