"""Products of matrices for every element type: the arithmetic of dot, convolution and their kin.

Narrow floats compute in f32 and round once; f32, f64 and complex numbers compute in their own type through
BLAS; integers wrap in the result type; pred multiplies with `and` and adds with `or`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.accumulation import finish, native, native_dtype
from hlotool.backends.numpy.threads import each, is_blas_single, spans
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ElementType

#: Integers up to here are exact in f32 and f64.
_EXACT_F32, _EXACT_F64 = 1 << 24, 1 << 53

#: Products of so many scalar products each are worth a thread's while.
_PART = 1 << 23
_MOST_PARTS = 16

#: A batch dimension of so many elements is cut rather than the matrices.
_LONG_BATCH = 4

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


def multiply_matrices(lhs: Array, rhs: Array) -> Array:
    """lhs [batch…, m, k] times rhs [batch…, k, n] in their common dtype, not rounded to a narrow type."""
    return _integer_product(lhs, rhs) if lhs.dtype.kind in "iu" else _product(lhs, rhs)


def _integer_product(lhs: Array, rhs: Array) -> Array:
    """Through floats, which BLAS multiplies, as far as no partial sum can exceed what they hold exactly."""
    terms = lhs.shape[-1]
    largest = max(1, _largest(lhs) * _largest(rhs))
    part = _EXACT_F32 // largest
    if part >= min(terms, _FEW_TERMS):
        total = np.zeros((), lhs.dtype)
        for start in range(0, max(1, terms), part):
            some = slice(start, start + part)
            total = total + _through(np.float32, np.int32, lhs[..., some], rhs[..., some, :])
        return total
    return _through(np.float64, np.int64, lhs, rhs) if terms * largest <= _EXACT_F64 else _product(lhs, rhs)


def _through(floating: type, integer: type, lhs: Array, rhs: Array) -> Array:
    exact = _product(lhs.astype(floating), rhs.astype(floating))
    return exact.astype(integer).astype(lhs.dtype, copy=False)


def rounded(product: Array, kind: ElementType) -> Array:
    """A product as a value of the result type."""
    return finish(product, kind)


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
        product: Array = np.matmul(lhs, rhs)
        return product
    product = np.empty((*batch, lhs.shape[-2], rhs.shape[-1]), lhs.dtype)

    def multiply(panel: _Panel) -> None:
        left, right, result = panel
        np.matmul(lhs[left], rhs[right], out=product[result])

    each(multiply, list(_panels(lhs.shape, rhs.shape, parts)))
    return product


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
