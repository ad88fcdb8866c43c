"""How far a result is from the reference: relative L2 error, representable values between, equal bits.

Results are gigabytes, so they are read in pieces, on all cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, TypeVar

import numpy as np

from hlotool.ir.dtypes import DTYPES, Array
from hlotool.ir.types import ElementType
from hlotool.numerics.metrics import bitwise_equal
from hlotool.numerics.ulp import ulp_distance

_PIECE = 1 << 20
_KINDS = {dtype: kind for kind, dtype in DTYPES.items()}

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Distance:
    """Of a result from a reference.

    Attributes:
        relative: L2 norm of the difference over that of the reference; infinite where one side alone is not
            finite, 0 where all is equal.
        ulps: largest number of representable values between two elements; None for integers.
    """

    relative: float
    ulps: int | None


def distance(expected: Sequence[Array], actual: Sequence[Array]) -> Distance:
    """The leaves of a result taken together.

    Raises:
        ValueError: the leaves differ in number, dtype or dimensions.
    """
    _check_alike(expected, actual)
    difference = norm = 0.0
    ulps: list[int] = []
    for e, a in zip(expected, actual):
        kind = _KINDS[e.dtype]
        parts = _on_pieces(lambda x, y, k=kind: _piece(x, y, k), e, a)  # type: ignore[misc]
        difference += sum(part[0] for part in parts)
        norm += sum(part[1] for part in parts)
        if kind.is_inexact:
            ulps.append(max(part[2] for part in parts))
    relative = sqrt(difference / norm) if norm else (0.0 if difference == 0 else inf)
    return Distance(relative, max(ulps, default=None))


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


def _piece(expected: Array, actual: Array, kind: ElementType) -> tuple[float, float, int]:
    """Squares of the difference and of the reference, summed, and the most ulps between two elements."""
    with np.errstate(all="ignore"):
        e, a = expected.astype(np.float64), actual.astype(np.float64)
        equal = (e == a) | (np.isnan(e) & np.isnan(a))
        finite = np.isfinite(e) & np.isfinite(a)
        squares = np.where(equal, 0, np.where(finite, (e - a) ** 2, inf))
        norm = float(np.where(finite, e * e, 0).sum())
    ulps: Any = np.zeros(1, np.uint64)
    if kind.is_inexact and not equal.all():
        ulps = np.where(equal | ~finite, 0, ulp_distance(expected, actual, kind))
    return float(squares.sum()), norm, int(ulps.max())
