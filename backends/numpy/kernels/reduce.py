"""Reductions over whole dimensions, and over sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.lanes import Lanes, lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ordering import Domain, Monoid
from hlotool.backends.numpy.plan import by_rows, each, spans
from hlotool.backends.numpy.precision import Conversion, converter
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.windows import output_sizes, window_slices
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import WindowDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType, TupleShape, array_shapes

#: From so many elements on NumPy sums them pairwise.
_PAIRWISE = 8

#: Smaller arrays are reduced as fast in one call.
_LARGE = 4096

#: Larger arrays are reduced in parts of about so many elements, which are so wide in the dimension whose
#: elements are neighbours in memory.
_VERY_LARGE, _PART, _WIDE = 1 << 19, 1 << 17, 1 << 9

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
    return _in_declared_types(instruction, _strategy(combine, axes))


def _in_declared_types(instruction: Instruction, strategy: _Reduce) -> Kernel:
    """The kernel of a reduction whose results may have other types than its operands: libtpu lets an addition
    of f32 return bf16, rounded once. The wider type of both is that of the function.
    """
    count = len(instruction.operands) // 2
    operands = [operand.element_type for operand in instruction.operands]
    results = [part.element_type for part in array_shapes(instruction.shape)]
    widest = [max(pair, key=lambda kind: kind.bits) for pair in zip(operands, results)]
    given = [_conversion(own, kind) for own, kind in zip(operands, widest * 2)]
    made = [_conversion(kind, declared) for kind, declared in zip(widest, results)]

    def converted(inputs: Sequence[Array], inits: Sequence[Array]) -> Sequence[Array]:
        values = [to(x) if to else x for to, x in zip(given, (*inputs, *inits))]
        found = strategy(values[:count], values[count:])
        return [to(x) if to else x for to, x in zip(made, found)]

    run = converted if any((*given, *made)) else strategy
    if not isinstance(instruction.shape, TupleShape):
        return lambda x, init: run((x,), (init,))[0]
    return lambda *values: tuple(run(values[:count], values[count:]))


def _conversion(source: ElementType, target: ElementType) -> Conversion | None:
    return None if source is target else converter(source, target)


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


#: Elements of a running sum that are added up one after the other.
_BLOCK = 64

#: Windows up to this size are reduced position by position, larger ones by blocks.
_SMALL = 8


@lowers("reduce-window")
def reduce_window(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Combine the elements in each position of a sliding window with `to_apply(accumulators…, elements…)`.

    The window is walked in row-major order from the initial values; padding and the holes of the base
    dilation are skipped. Monoids are reduced dimension by dimension, large windows (cumulative sums) in time
    independent of their size. Sums are more accurate than any backend's (see `accumulation`).

    XLA: operation_semantics.md#reducewindow.
    """
    dims = instruction.window.dims
    combine = lanes(instruction.computation("to_apply"), lowering)
    return _in_declared_types(instruction, _reduce_window_strategy(combine, dims))


def _reduce_window_strategy(combine: Lanes, dims: Sequence[WindowDim]) -> _Reduce:
    monoids = combine.monoids
    if monoids is not None:
        return lambda inputs, inits: [_slide(m, x, i, dims) for m, x, i in zip(monoids, inputs, inits)]
    axis = _cumulative_axis(dims)
    if axis is not None:
        return lambda inputs, inits: _accumulate(combine, inputs, inits, axis, dims[axis])
    return lambda inputs, inits: _walk(combine, inputs, inits, dims)


def _walk(
    combine: Lanes, inputs: Sequence[Array], inits: Sequence[Array], dims: Sequence[WindowDim]
) -> Sequence[Array]:
    """One application for each position in the window, to all outputs that see an element there."""
    sizes = output_sizes(dims, inputs[0].shape)
    results = [np.full(sizes, init, x.dtype) for x, init in zip(inputs, inits)]
    for _, outputs, elements in window_slices(dims, inputs[0].shape, sizes):
        values = combine(*(r[outputs] for r in results), *(x[elements] for x in inputs))
        for result, value in zip(results, values):
            result[outputs] = value
    return results


def _cumulative_axis(dims: Sequence[WindowDim]) -> int | None:
    """The axis along which each window is the one before and a new element; None for other windows."""
    wide = [axis for axis, dim in enumerate(dims) if dim != WindowDim(1)]
    if len(wide) != 1:
        return None
    dim = dims[wide[0]]
    grows = dim == WindowDim(dim.size, pad_low=dim.size - 1, pad_high=dim.pad_high) and dim.pad_high <= 0
    return wide[0] if grows else None


def _accumulate(
    combine: Lanes, inputs: Sequence[Array], inits: Sequence[Array], axis: int, dim: WindowDim
) -> Sequence[Array]:
    """Windows that only grow: each result continues from the one before."""
    length = inputs[0].shape[axis]
    if dim.size < length:
        dims = [dim if a == axis else WindowDim(1) for a in range(inputs[0].ndim)]
        return _walk(combine, inputs, inits, dims)
    rows = [np.moveaxis(x, axis, 0) for x in inputs]
    results = [np.empty((max(0, length + dim.pad_high), *r.shape[1:]), r.dtype) for r in rows]
    values: Sequence[Any] = [np.broadcast_to(i, r.shape[1:]) for i, r in zip(inits, rows)]
    for position in range(len(results[0])):
        values = combine(*values, *(r[position, ...] for r in rows))
        for result, value in zip(results, values):
            result[position] = value
    return [np.moveaxis(r, 0, axis) for r in results]


def _slide(monoid: Monoid, x: Array, init: Array, dims: Sequence[WindowDim]) -> Array:
    """Reduce dimension after dimension; holes hold the neutral element."""
    running = running_axis(dims, x.shape)
    if running is not None:
        return _run(monoid, x, init, running, backwards=dims[running].pad_low == 0)
    sizes = output_sizes(dims, x.shape)
    domain = monoid.domain(x, init)
    values, start = domain.values
    padded = _spread(values.astype(domain.dtype, copy=False), dims, domain.identity)
    for axis, dim in enumerate(dims):
        rows = np.moveaxis(padded, axis, -1)
        padded = np.moveaxis(_slide_rows(monoid.ufunc, rows, dim, sizes[axis], domain), -1, axis)
    return domain.restore(monoid.ufunc(start.astype(domain.dtype), padded))


def running_axis(dims: Sequence[WindowDim], sizes: Sequence[int]) -> int | None:
    """The axis of a cumulative sum and the like: every window is all that lies before (or behind) it."""
    wide = [axis for axis, dim in enumerate(dims) if dim != WindowDim(1)]
    if len(wide) != 1:
        return None
    size = sizes[wide[0]]
    whole = (WindowDim(size, pad_low=size - 1), WindowDim(size, pad_high=size - 1))
    return wide[0] if size and dims[wide[0]] in whole else None


def _run(monoid: Monoid, x: Array, init: Array, axis: int, backwards: bool) -> Array:
    """All results from one pass over each row."""
    step = -1 if backwards else 1

    def run(rows: Sequence[Array]) -> list[Array]:
        domain = monoid.domain(rows[0][..., ::step], init)
        values, start = domain.values
        totals = _accumulated(monoid.ufunc, values.astype(domain.dtype, copy=False))
        return [domain.restore(monoid.ufunc(start.astype(domain.dtype), totals))[..., ::step]]

    (result,) = by_rows(run, [np.moveaxis(x, axis, -1)])
    return np.moveaxis(result, -1, axis)


def _accumulated(ufunc: np.ufunc, rows: Array) -> Array:
    """Running sums along the last dimension, long ones of floats in blocks: fewer roundings in a row."""
    length = rows.shape[-1]
    if rows.dtype.kind not in "fc" or ufunc is not np.add or length < 2 * _BLOCK:
        whole: Array = ufunc.accumulate(rows, axis=-1)
        return whole
    blocks = length // _BLOCK
    inside = rows[..., : blocks * _BLOCK].reshape((*rows.shape[:-1], blocks, _BLOCK))
    sums = np.add.accumulate(inside, axis=-1)
    # What lies before a block is added to all of its sums, and to those of what is left behind the last one.
    before = _accumulated(ufunc, sums[..., -1])
    sums[..., 1:, :] += before[..., :-1, None]
    rest = np.add.accumulate(rows[..., blocks * _BLOCK :], axis=-1) + before[..., -1:]
    return np.concatenate([sums.reshape((*rows.shape[:-1], -1)), rest], axis=-1)


def _spread(x: Array, dims: Sequence[WindowDim], fill: Any) -> Array:
    """`x` with padding and base dilation written out; negative padding cuts."""
    if all(d.pad_low == d.pad_high == 0 and d.base_dilation == 1 for d in dims):
        return x
    extents = []
    targets, sources = [], []
    for dim, size in zip(dims, x.shape):
        step, low = dim.base_dilation, dim.pad_low
        dilated = (size - 1) * step + 1 if size else 0
        extent = max(0, dilated + low + dim.pad_high)
        first = max(0, -(low // step))
        stop = max(first, min(size, -((low - extent) // step)))
        extents.append(extent)
        sources.append(slice(first, stop))
        targets.append(slice(low + first * step, max(0, low + (stop - 1) * step + 1), step))
    spread = np.full(extents, fill, x.dtype)
    spread[tuple(targets)] = x[tuple(sources)]
    return spread


def _slide_rows(ufunc: np.ufunc, rows: Array, dim: WindowDim, count: int, domain: Domain) -> Array:
    """Reduce windows along the last axis, already padded: `count` of them."""
    span = (count - 1) * dim.stride + 1 if count else 0
    if dim.size <= _SMALL:
        return _small_windows(ufunc, rows, dim, span)
    if dim.window_dilation == 1 and count * dim.size <= 2 * rows.shape[-1]:
        return _few_windows(ufunc, rows, dim, count, domain)
    return _block_windows(ufunc, rows, dim, domain)[..., : span : dim.stride]


def _small_windows(ufunc: np.ufunc, rows: Array, dim: WindowDim, span: int) -> Array:
    """One application per position in the window."""
    offsets = range(0, dim.dilated_size, dim.window_dilation)
    parts = [rows[..., offset : offset + span : dim.stride] for offset in offsets]
    result = parts[0]
    for part in parts[1:]:
        result = ufunc(result, part)
    return result


def _few_windows(ufunc: np.ufunc, rows: Array, dim: WindowDim, count: int, domain: Domain) -> Array:
    """One reduction per window."""
    result = np.empty((*rows.shape[:-1], count), rows.dtype)
    for i in range(count):
        window = rows[..., i * dim.stride : i * dim.stride + dim.size]
        ufunc.reduce(window, axis=-1, dtype=domain.dtype, out=result[..., i])
    return result


def _block_windows(ufunc: np.ufunc, rows: Array, dim: WindowDim, domain: Domain) -> Array:
    """Windows from every start, in time independent of their size (van Herk, Gil and Werman).

    The row is cut into blocks as long as the window. A window is the tail of one block and the head of the
    next; both come from running reductions inside the blocks. Dilated windows become dense ones in each of
    the interleaved sub-rows.
    """
    dilation, size = dim.window_dilation, dim.size
    length = rows.shape[-1]
    columns = -(-length // dilation)
    blocks = -(-columns // size)
    padded = np.full((*rows.shape[:-1], blocks * size * dilation), domain.identity, rows.dtype)
    padded[..., :length] = rows
    cells = np.moveaxis(padded.reshape((*rows.shape[:-1], blocks * size, dilation)), -1, -2)
    cells = cells.reshape((*rows.shape[:-1], dilation, blocks, size))
    heads = ufunc.accumulate(cells, axis=-1)
    # A window that is exactly one block is its own tail.
    heads[..., -1] = domain.identity
    tails = ufunc.accumulate(cells[..., ::-1], axis=-1)[..., ::-1]
    heads, tails = (a.reshape((*rows.shape[:-1], dilation, blocks * size)) for a in (heads, tails))
    starts = max(0, blocks * size - size + 1)
    windows: Array = ufunc(tails[..., :starts], heads[..., size - 1 : size - 1 + starts])
    return np.moveaxis(windows, -2, -1).reshape((*rows.shape[:-1], starts * dilation))
