"""Given arrays made to fit declared shapes, without changing a single value.

Accepted for an element type are:

- arrays of its dtype;
- raw bits: NumPy loads bf16, f8, f4 and int4 arrays from .npy and .npz files as untyped bytes (`|V2`, `|V1`),
  and people save bf16 and f8 as unsigned integers of the same width: both are reinterpreted;
- arrays of another dtype whose every value the element type holds exactly (float64 that came from f32, int64
  that came from s32, 0/1 for pred); floats never become integers;
- Python numbers and lists of them, rounded to the element type, as JAX treats them.

Everything else is an error: rounding inputs in silence would change the program's results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.errors import InputDataError
from hlotool.ir.dtypes import Array, dtype_of, element_type_of
from hlotool.ir.types import ArrayShape, ElementType, Shape
from hlotool.values.flatten import Value, flatten, unflatten


def fit(value: Any, shape: ArrayShape, label: str) -> Array:
    """`value` as an array of the dtype and dimensions of `shape`; those of dynamic dimensions may be smaller.

    Raises:
        InputDataError: it does not fit; the message starts with `label`.
    """
    array = np.asarray(value)
    if not shape.admits(array.shape):
        dims = ",".join(map(str, array.shape))
        raise InputDataError(f"{label}: expected {shape.logical_text()}, got dimensions [{dims}]")
    dtype = dtype_of(shape.element_type)
    if array.dtype == dtype:
        return array
    if _is_raw(array.dtype, shape.element_type):
        return np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    weak = not hasattr(value, "dtype")
    return _cast(array, shape.element_type, label, weak)


def fit_value(shape: Shape, value: Any, label: str) -> Value:
    """`value` with every array in it fitted to its part of `shape`; None for what is no array.

    Raises:
        InputDataError: it does not fit; the message starts with `label`.
    """
    try:
        parts = list(flatten(shape, value))
    except TypeError as error:
        raise InputDataError(f"{label}: {error}") from error
    arrays = []
    for index, part, array in parts:
        where = label + "".join(f".{i}" for i in index)
        arrays.append(fit(array, part, where) if isinstance(part, ArrayShape) else None)
    return unflatten(shape, arrays)


def _is_raw(dtype: np.dtype[Any], element_type: ElementType) -> bool:
    """Untyped bytes, or the bits of a narrow float as unsigned integers."""
    if dtype.itemsize != dtype_of(element_type).itemsize:
        return False
    if dtype.kind == "V" and element_type_of(dtype) is None:
        return True
    return dtype.kind == "u" and element_type.is_narrow_float and element_type is not ElementType.F16


def _cast(array: Array, element_type: ElementType, label: str, weak: bool) -> Array:
    source, dtype = element_type_of(array.dtype), dtype_of(element_type)
    if source is None:
        raise InputDataError(f"{label}: expected {element_type}, got dtype {array.dtype}")
    if not _is_wider_kind(source, element_type):
        raise InputDataError(
            f"{label}: expected {element_type}, got {source}; convert it yourself if that is meant"
        )
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
        changed = ~_equal(_back(result, array), array) | _flips_sign(result, array)
    if changed.any() and not (weak and element_type.is_inexact):
        raise _inexact(array, changed, source, element_type, label)
    return result


def _is_wider_kind(source: ElementType, target: ElementType) -> bool:
    """Integers may become floats and floats complex, never back."""

    def rank(element_type: ElementType) -> int:
        return 2 if element_type.is_complex else int(element_type.is_floating)

    return rank(source) <= rank(target)


def _back(result: Array, array: Array) -> Array:
    """The converted values in the dtype that they came from."""
    real = result.real if result.dtype.kind == "c" and array.dtype.kind != "c" else result
    return np.asarray(real.astype(array.dtype))


def _equal(a: Array, b: Array) -> Array:
    """Equal or both NaN."""
    return np.asarray((a == b) | ((a != a) & (b != b)), np.bool_)


def _flips_sign(result: Array, array: Array) -> Array:
    """A signed integer came out of an unsigned one of the same width, or the other way round."""
    if array.dtype.kind in "iu" and result.dtype.kind in "iu":
        return np.asarray((result < 0) != (array < 0), np.bool_)
    return np.zeros(array.shape, np.bool_)


def _inexact(
    array: Array, changed: Array, source: ElementType, element_type: ElementType, label: str
) -> InputDataError:
    index = tuple(int(i) for i in np.unravel_index(int(changed.argmax()), array.shape))
    where = f" at [{','.join(map(str, index))}]" if index else ""
    count = int(changed.sum())
    return InputDataError(
        f"{label}: {count} of {array.size} values of type {source} are not exact in {element_type}"
        f" (first: {array[index]}{where}); convert the array yourself if rounding it is meant"
    )
