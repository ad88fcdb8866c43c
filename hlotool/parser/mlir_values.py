"""Values and types of MLIR text as arrays and shapes, and StableHLO operations on constants.

XLA folds such operations before it writes the first HLO: the table of `x[table]` is compared with zero,
wrapped, and reshaped in StableHLO, and appears in HLO as one constant. Operations that round otherwise than
NumPy, or that are not understood, have no value here.

StableHLO: docs/spec.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.types import ArrayShape

Fold = Callable[[Sequence[Array], str, ArrayShape], Array | None]

_DIMENSIONS = re.compile(r"dims? = \[?(?P<dims>[\d, ]*)\]?")
_SLICE = re.compile(r"\[(?P<ranges>\d+:\d+[^\]]*)\]")
_DIRECTION = re.compile(
    r"^stablehlo\.compare (?P<direction>EQ|NE|LT|LE|GT|GE),.*, (?:SIGNED|UNSIGNED|FLOAT) :"
)


def fold(operation: str, text: str, operands: Sequence[Array], shape: ArrayShape) -> Array | None:
    """The result of an operation, or None.

    Args:
        operation: such as `stablehlo.add`.
        text: the whole operation after its `=`.
        operands: their values, in order.
        shape: of the result.
    """
    rule = _RULES.get(operation.removeprefix("stablehlo."))
    try:
        result = rule(operands, text, shape) if rule else None
        # Of an operand alone np.where makes a tuple.
        if not isinstance(result, np.ndarray | np.generic) or result.shape != shape.dims:
            return None
        return np.ascontiguousarray(result.astype(dtype_of(shape.element_type), copy=False)).reshape(
            shape.dims
        )
    except (TypeError, ValueError, IndexError, OverflowError, MemoryError):
        # Too few operands, dimensions that are not there, more elements than fit into memory.
        return None


def _integers(text: str, pattern: re.Pattern[str] = _DIMENSIONS) -> list[int] | None:
    found = pattern.search(text)
    return [int(word) for word in re.findall(r"\d+", found[1])] if found else None


def _broadcast(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
    dims = _integers(text)
    [operand] = operands
    if dims is None or len(dims) != operand.ndim or dims != sorted(dims):
        return None
    aligned = [1] * shape.rank
    for dim, size in zip(dims, operand.shape):
        aligned[dim] = size
    return np.broadcast_to(operand.reshape(aligned), shape.dims)


def _transpose(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
    dims = _integers(text)
    return None if dims is None else operands[0].transpose(dims)


def _slice(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
    found = _SLICE.search(text)
    if found is None:
        return None
    return operands[0][tuple(slice(*map(int, part.split(":"))) for part in found["ranges"].split(","))]


def _concatenate(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
    dims = _integers(text)
    return np.concatenate(operands, dims[0]) if dims else None


def _iota(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
    dims = _integers(text)
    if not dims or not shape.element_type.is_integer:
        return None
    along = [size if dim == dims[0] else 1 for dim, size in enumerate(shape.dims)]
    return np.broadcast_to(np.arange(shape.dims[dims[0]]).reshape(along), shape.dims)


def _convert(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
    """Between integers, from integers that a float holds exactly, and to wider floats."""
    [operand] = operands
    target = dtype_of(shape.element_type)
    is_integral = operand.dtype.kind in "biu" and target.kind in "biu"
    if target.kind == "b" or not (is_integral or np.can_cast(operand.dtype, target, "safe")):
        return None
    return operand.astype(target)


def _compare(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
    found = _DIRECTION.match(text)
    if found is None:
        return None
    return np.asarray(_COMPARISONS[found["direction"]](*operands))


_COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _select(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
    return np.where(*operands)


def _elementwise(function: Callable[..., Array], kinds: str) -> Fold:
    """For operands of NumPy's `kinds` only: integers wrap around, f32 and f64 round as IEEE says."""

    def rule(operands: Sequence[Array], text: str, shape: ArrayShape) -> Array | None:
        if any(operand.dtype.kind not in kinds for operand in operands):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands))

    return rule


_RULES: Mapping[str, Fold] = {
    "add": _elementwise(np.add, "iuf"),
    "and": _elementwise(np.bitwise_and, "biu"),
    "broadcast_in_dim": _broadcast,
    "compare": _compare,
    "concatenate": _concatenate,
    "convert": _convert,
    "iota": _iota,
    "maximum": _elementwise(np.maximum, "iu"),
    "minimum": _elementwise(np.minimum, "iu"),
    "multiply": _elementwise(np.multiply, "iuf"),
    "negate": _elementwise(np.negative, "if"),
    "not": _elementwise(np.bitwise_not, "biu"),
    "or": _elementwise(np.bitwise_or, "biu"),
    "reshape": lambda operands, text, shape: operands[0].reshape(shape.dims),
    "select": _select,
    "slice": _slice,
    "subtract": _elementwise(np.subtract, "iuf"),
    "transpose": _transpose,
    "xor": _elementwise(np.bitwise_xor, "biu"),
}
