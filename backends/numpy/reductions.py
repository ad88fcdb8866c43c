"""Reductions through a ufunc, in the order in which NumPy makes them, by parts that it is quick with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.numpy.ordering import Domain, Monoid
from hlotool.backends.numpy.threads import by_rows, each, spans
from hlotool.ir.arrays import Array

#: From so many elements on NumPy sums them pairwise.
_PAIRWISE = 8

#: NumPy takes shorter rows one by one, which costs more than their sums.
_FEW = 16

#: Smaller arrays are reduced as fast in one call.
_LARGE = 4096

#: Larger arrays are reduced in parts of about so many elements, which are so wide in the dimension whose
#: elements are neighbours in memory.
_VERY_LARGE, _PART, _WIDE = 1 << 19, 1 << 17, 1 << 9


def reduce_monoid(monoid: Monoid, x: Array, init: Array, axes: tuple[int, ...]) -> Array:
    """Reduce `x` over `axes` through the monoid's ufunc."""
    domain = monoid.domain(x, init)
    values, start = domain.values
    is_pairwise = monoid.ufunc is np.add and values.flags.c_contiguous
    longest_row = _FEW if is_pairwise else _PAIRWISE
    if axes == (x.ndim - 1,) and 0 < x.shape[-1] < longest_row and x.size >= _LARGE and x.dtype.kind != "c":
        return _reduce_columns(monoid.ufunc, values, start, domain)
    few = x.shape[-1] if x.ndim > 2 and axes == (x.ndim - 2,) and values.flags.c_contiguous else 0
    if 1 < few < _FEW and x.size >= _LARGE:
        return domain.restore(_reduce_before_few(monoid.ufunc, values, start, domain.dtype))
    kept = [d for d in range(x.ndim) if d not in axes]
    longest = max(kept, key=lambda d: x.shape[d], default=None)
    parts = _parts(values, longest) if longest is not None and x.size >= _VERY_LARGE else 1
    if longest is None or parts < 2:
        return domain.restore(monoid.ufunc.reduce(values, axis=axes, dtype=domain.dtype, initial=start))
    return domain.restore(_reduce_in_parts(monoid.ufunc, domain, axes, longest, parts))


def _parts(values: Array, along: int) -> int:
    """How many parts of a dimension that is kept are reduced on their own.

    NumPy takes narrow ones five times as long as the whole; of single columns it makes pairwise sums.
    """
    size, parts = values.shape[along], values.size // _PART
    is_narrow = values.strides[along] == values.itemsize and size < parts * _WIDE
    return max(1, size // _WIDE) if is_narrow and size > parts else parts


def _reduce_in_parts(ufunc: np.ufunc, domain: Domain, axes: tuple[int, ...], along: int, parts: int) -> Array:
    """Parts of the result at the same time; `along` is a dimension that is kept."""
    values, start = domain.values
    result = np.empty([size for d, size in enumerate(values.shape) if d not in axes], domain.dtype)
    target = along - sum(axis < along for axis in axes)

    def reduce_part(span: slice) -> None:
        part, out = values[(slice(None),) * along + (span,)], result[(slice(None),) * target + (span,)]
        ufunc.reduce(part, axis=axes, dtype=domain.dtype, initial=start, out=out)

    each(reduce_part, list(spans(values.shape[along], parts)))
    return result


def _reduce_columns(ufunc: np.ufunc, values: Array, start: Array, domain: Domain) -> Array:
    def reduce_rows(rows: Sequence[Array]) -> list[Array]:
        return [domain.restore(_combine_columns(ufunc, rows[0], start.astype(domain.dtype)))[..., None]]

    (result,) = by_rows(reduce_rows, [values])
    return result[..., 0]


def _reduce_before_few(ufunc: np.ufunc, values: Array, start: Array, dtype: np.dtype[Any]) -> Array:
    """The reduction over the last dimension but one, in its order.

    NumPy would take the few elements of the last dimension at a time; here they are those of many rows.
    """
    length, few = values.shape[-2:]
    matrices = values.reshape((-1, length, few))
    result = np.empty((len(matrices), few), dtype)

    def reduce_part(part: slice) -> None:
        turned = matrices[part].transpose((1, 0, 2)).astype(dtype, order="C").reshape((length, -1))
        ufunc.reduce(turned, axis=0, dtype=dtype, initial=start, out=result[part].reshape(-1))

    each(reduce_part, list(spans(len(matrices), values.size // _PART)))
    return result.reshape((*values.shape[:-2], few))


def _combine_columns(ufunc: np.ufunc, values: Array, start: Array) -> Array:
    """The reduction over a short last dimension, all rows at once; in NumPy's order, ten times as fast."""
    columns = [values[..., i] for i in range(values.shape[-1])]
    if ufunc is np.add:
        return ufunc(start, _pairwise_sum([column.astype(start.dtype) for column in columns]))
    total: Array = ufunc(start, columns[0])
    for column in columns[1:]:
        ufunc(total, column, out=total)
    return total


def _pairwise_sum(columns: list[Array]) -> Array:
    """As NumPy adds up to 128 numbers: every eighth in turn, these sums in pairs, then what is left over."""
    whole = len(columns) - len(columns) % _PAIRWISE
    lanes, rest = columns[:_PAIRWISE] if whole else columns[:1], columns[whole or 1 :]
    for position in range(_PAIRWISE, whole):
        lanes[position % _PAIRWISE] += columns[position]
    while len(lanes) > 1:
        lanes = [a + b for a, b in zip(lanes[::2], lanes[1::2])]
    (total,) = lanes
    for column in rest:
        total += column
    return total
