"""Products of matrices for every element type: the arithmetic of dot, convolution and their kin.

Narrow floats compute in f32 and round once; f32, f64 and complex numbers compute in their own type through
BLAS; integers wrap in the result type; pred multiplies with `and` and adds with `or`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.floats import foreign
from hlotool.backends.numpy.precision import finish, native, native_dtype
from hlotool.backends.numpy.threads import each, is_blas_single, spans
from hlotool.ir.arrays import Array
from hlotool.ir.types import ElementType

#: Integers up to here are exact in f32 and f64.
_EXACT_F32, _EXACT_F64 = 1 << 24, 1 << 53

#: Products of so many scalar products each are worth a thread's while.
_PART = 1 << 23
_MOST_PARTS = 16

#: A batch dimension of so many elements is cut rather than the matrices.
_LONG_BATCH = 4

#: Elements of the matrices that are converted at a time, and how many rows or columns they have at least.
_TILE, _TILE_SIDE = 3 << 15, 64

#: Indices into both operands and into the product.
_Panel: TypeAlias = tuple[Any, Any, Any]

#: Sums of fewer terms are not worth a product of their own.
_FEW_TERMS = 256


def operand_dtype(result: ElementType, *operands: ElementType) -> np.dtype[Any]:
    """The dtype in which products of `operands` are computed and summed for a result of type `result`.

    Integer results wrap, so their own type suffices; otherwise the widest type takes part, so that a result
    narrower than the operands is rounded once, at the end.
    """
    own = native_dtype(result)
    if result is ElementType.PRED or result.is_integer:
        return own
    return np.result_type(own, *(native_dtype(o) for o in operands if not o.is_integer))


def widened(value: Array, kind: ElementType, dtype: np.dtype[Any]) -> Array:
    """`value` of type `kind` in the dtype of the computation."""
    return native(value, kind).astype(dtype, copy=False)


def multiply_matrices(lhs: Array, rhs: Array, dtype: np.dtype[Any] | None = None) -> Array:
    """lhs [batch…, m, k] times rhs [batch…, k, n] in their common dtype, not rounded to a narrow type.

    Args:
        dtype: of the product, where both are integers, perhaps of narrower types.
    """
    if (own := foreign(lhs)) is not None:
        product: Array = own.multiply_matrices(rhs)
        return product
    return _integer_product(lhs, rhs, dtype or lhs.dtype) if lhs.dtype.kind in "iu" else _product(lhs, rhs)


def _integer_product(lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    """Through floats, which BLAS multiplies, as far as no partial sum can exceed what they hold exactly."""
    terms, largest = lhs.shape[-1], max(1, _largest(lhs) * _largest(rhs))
    if _EXACT_F32 // largest >= min(terms, _FEW_TERMS):
        return _through(np.float32, _EXACT_F32 // largest, lhs, rhs, dtype)
    if terms * largest <= _EXACT_F64:
        return _through(np.float64, max(1, terms), lhs, rhs, dtype)
    return _product(lhs.astype(dtype, copy=False), rhs.astype(dtype, copy=False))


def _through(floating: type, part: int, lhs: Array, rhs: Array, dtype: np.dtype[Any]) -> Array:
    """The product by sums of `part` terms; tile by tile, so that little is converted at a time."""
    rows, terms, columns = lhs.shape[-2], lhs.shape[-1], rhs.shape[-1]
    batch = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    integer = np.int32 if floating is np.float32 else np.int64
    result = np.zeros((*batch, rows, columns), dtype)

    def multiply(tile: tuple[slice, slice]) -> None:
        across, down = tile
        for start in range(0, terms, part):
            some = slice(start, start + part)
            left, right = lhs[..., across, some], rhs[..., some, down]
            exact = np.matmul(_for_blas(left.astype(floating)), _for_blas(right.astype(floating)))
            result[..., across, down] += exact.astype(integer).astype(dtype, copy=False)

    side = max(_TILE_SIDE, _TILE // max(1, terms * prod(batch)))
    tiles = product(spans(rows, -(-rows // side)), spans(columns, -(-columns // side)))
    each(multiply, list(tiles))
    return result


def rounded(value: Array, kind: ElementType) -> Array:
    """A product as a value of the result type."""
    return finish(value, kind)


def matrix(value: Array, batch: tuple[int, ...], rows: tuple[int, ...], columns: tuple[int, ...]) -> Array:
    """`value` as [batch…, rows, columns], each of the two merged from several dimensions."""
    sizes = value.shape
    shape = [*(sizes[d] for d in batch), prod(sizes[d] for d in rows), prod(sizes[d] for d in columns)]
    return value.transpose([*batch, *rows, *columns]).reshape(shape)


def _largest(value: Array) -> int:
    """Largest absolute value."""
    return max(int(value.max(initial=0)), -int(value.min(initial=0)))


def _product(lhs: Array, rhs: Array) -> Array:
    lhs, rhs = _for_blas(lhs), _for_blas(rhs)
    batch = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    parts = min(_MOST_PARTS, prod(batch) * lhs.shape[-2] * rhs.shape[-2] * rhs.shape[-1] // _PART)
    if parts < 2 or not is_blas_single() or lhs.dtype.kind not in "fc":
        whole: Array = np.matmul(lhs, rhs)
        return whole
    result = np.empty((*batch, lhs.shape[-2], rhs.shape[-1]), lhs.dtype)

    def multiply(panel: _Panel) -> None:
        left, right, target = panel
        np.matmul(lhs[left], rhs[right], out=result[target])

    each(multiply, list(_panels(lhs.shape, rhs.shape, parts)))
    return result


def _panels(lhs: Sequence[int], rhs: Sequence[int], parts: int) -> Iterator[_Panel]:
    """What of both matrices makes which part of the product: some of the batch, or of the rows or columns."""
    whole, rest = slice(None), (slice(None),)
    if lhs[:-2] == rhs[:-2] and max(lhs[:-2], default=1) >= _LONG_BATCH:
        axis = max(range(len(lhs) - 2), key=lambda d: lhs[d])
        for span in spans(lhs[axis], parts):
            yield ((whole,) * axis + (span,),) * 3
    elif lhs[-2] >= rhs[-1]:
        for span in spans(lhs[-2], parts):
            yield (..., span, whole), rest, (..., span, whole)
    else:
        for span in spans(rhs[-1], parts):
            yield rest, (..., span), (..., span)


def _for_blas(value: Array) -> Array:
    """A copy where neither of the last two dimensions is contiguous: NumPy multiplies those without BLAS."""
    if value.dtype != np.bool_ and value.size and value.itemsize not in value.strides[-2:]:
        return np.ascontiguousarray(value)
    return value
