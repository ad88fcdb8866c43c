"""Reductions over whole dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.lanes import Lanes, lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.monoids import Domain, Monoid
from hlotool.backends.numpy.ownership import by_rows, each, spans
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import TupleShape

#: From so many elements on NumPy sums them pairwise.
_PAIRWISE = 8

#: Smaller arrays are reduced as fast in one call.
_LARGE = 4096

#: Larger arrays are reduced in parts of about so many elements.
_VERY_LARGE, _PART = 1 << 19, 1 << 17

#: From inputs and initial values to results.
_Reduce = Callable[[Sequence[Array], Sequence[Array]], Sequence[Array]]


@lowers("reduce")
def reduce(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Combine the elements along some dimensions with `to_apply(accumulators…, elements…)`.

    The result starts from the initial values, which take part exactly once; backends may use them several
    times, so anything but a neutral element is not portable, and over no dimensions XLA's simplifier drops
    them. Sums are more accurate than any backend's (see `accumulation`). Computations that are neither
    monoids nor choices are applied in row-major order; XLA leaves the order open, and its CPU code changes it
    from about 33 elements on.

    XLA: operation_semantics.md#reduce.
    """
    axes = tuple(sorted(instruction.integers("dimensions")))
    combine = lanes(instruction.computation("to_apply"), lowering)
    strategy = _strategy(combine, axes)
    count = len(instruction.operands) // 2
    if not isinstance(instruction.shape, TupleShape):
        return lambda x, init: strategy((x,), (init,))[0]
    return lambda *values: tuple(strategy(values[:count], values[count:]))


def _strategy(combine: Lanes, axes: tuple[int, ...]) -> _Reduce:
    monoids = combine.monoids
    if monoids is not None:
        return lambda inputs, inits: [reduce_monoid(m, x, i, axes) for m, x, i in zip(monoids, inputs, inits)]
    fold = fold_pairs if combine.is_choice else fold_in_order
    return lambda inputs, inits: fold(combine, [rows_of(x, axes) for x in inputs], inits)


def reduce_monoid(monoid: Monoid, x: Array, init: Array, axes: tuple[int, ...]) -> Array:
    """Reduce `x` over `axes` through the monoid's ufunc."""
    domain = monoid.domain(x, init)
    values, start = domain.values
    if axes == (x.ndim - 1,) and 0 < x.shape[-1] < _PAIRWISE and x.size >= _LARGE and x.dtype.kind != "c":
        return _reduce_columns(monoid.ufunc, values, start, domain)
    kept = [d for d in range(x.ndim) if d not in axes]
    longest = max(kept, key=lambda d: x.shape[d], default=None)
    if x.size < _VERY_LARGE or longest is None:
        return domain.restore(monoid.ufunc.reduce(values, axis=axes, dtype=domain.dtype, initial=start))
    return domain.restore(_reduce_in_parts(monoid.ufunc, domain, axes, longest))


def _reduce_in_parts(ufunc: np.ufunc, domain: Domain, axes: tuple[int, ...], along: int) -> Array:
    """Parts of the result at the same time; `along` is a dimension that is kept."""
    values, start = domain.values
    result = np.empty([size for d, size in enumerate(values.shape) if d not in axes], domain.dtype)
    target = along - sum(axis < along for axis in axes)

    def reduce_part(span: slice) -> None:
        part, out = values[(slice(None),) * along + (span,)], result[(slice(None),) * target + (span,)]
        ufunc.reduce(part, axis=axes, dtype=domain.dtype, initial=start, out=out)

    each(reduce_part, list(spans(values.shape[along], values.size // _PART)))
    return result


def _reduce_columns(ufunc: np.ufunc, values: Array, start: Array, domain: Domain) -> Array:
    def reduce_rows(rows: Sequence[Array]) -> list[Array]:
        return [domain.restore(_combine_columns(ufunc, rows[0], start.astype(domain.dtype)))[..., None]]

    (result,) = by_rows(reduce_rows, [values])
    return result[..., 0]


def _combine_columns(ufunc: np.ufunc, values: Array, start: Array) -> Array:
    """The reduction over a short last dimension, all rows at once; in NumPy's order, ten times as fast."""
    columns = [values[..., i] for i in range(values.shape[-1])]
    total: Array = columns[0].astype(start.dtype) if ufunc is np.add else ufunc(start, columns[0])
    for column in columns[1:]:
        ufunc(total, column, out=total)
    return ufunc(start, total) if ufunc is np.add else total


def rows_of(x: Array, axes: tuple[int, ...]) -> Array:
    """The reduced dimensions as one leading dimension, in row-major order; then the kept ones."""
    kept = [d for d in range(x.ndim) if d not in axes]
    length = prod(x.shape[d] for d in axes)
    return x.transpose([*axes, *kept]).reshape([length, *(x.shape[d] for d in kept)])


def fold_in_order(combine: Lanes, rows: Sequence[Array], inits: Sequence[Array]) -> Sequence[Array]:
    """acc = f(acc, row) for one row after the other; all lanes of a row at once."""
    accumulators: Sequence[Any] = [np.broadcast_to(i, r.shape[1:]) for i, r in zip(inits, rows)]
    for position in range(rows[0].shape[0]):
        accumulators = combine(*accumulators, *(r[position, ...] for r in rows))
    return accumulators


def fold_pairs(combine: Lanes, rows: Sequence[Array], inits: Sequence[Array]) -> Sequence[Array]:
    """Combine neighbouring rows until one is left, which an associative f allows; then the initial values."""
    while (length := rows[0].shape[0]) > 1:
        even = length - length % 2
        merged = combine(*(r[0:even:2] for r in rows), *(r[1:even:2] for r in rows))
        odd = [r[even:] for r in rows]
        rows = [np.concatenate(pair) for pair in zip(merged, odd)] if length % 2 else merged
    return fold_in_order(combine, rows, inits)
