"""Where an array differs: a map of its last two dimensions, small enough for a terminal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hlotool.findings.comparison import HeatMapRecord
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ElementType

#: Cells of a map at most: beyond that they stand for several elements each.
_ROWS, _COLUMNS = 12, 48


def heat_map(expected: Array, actual: Array, element_type: ElementType) -> HeatMapRecord | None:
    """The largest errors by place.

    Args:
        expected: of the dimensions of the leaf.
        actual: of the same dimensions.
        element_type: of both.

    Returns:
        None for arrays that have no two dimensions of more than one element.
    """
    if expected.ndim < 2 or min(expected.shape[-2:]) < 2 or not expected.size:
        return None
    rows, columns = expected.shape[-2:]
    down, right = _edges(rows, _ROWS), _edges(columns, _COLUMNS)
    cells = np.zeros((len(down), len(right)))
    for e, a in zip(expected.reshape(-1, rows, columns), actual.reshape(-1, rows, columns)):
        errors = _errors(e, a, element_type)
        blocks = np.maximum.reduceat(np.maximum.reduceat(errors, down, axis=0), right, axis=1)
        np.maximum(cells, blocks, out=cells)
    shown = [[None if np.isinf(error) else float(error) for error in row] for row in cells]
    return HeatMapRecord(rows=rows, columns=columns, cells=shown)


def _edges(size: int, most: int) -> npt.NDArray[np.intp]:
    """Where cells begin: as equal as they can be."""
    return np.unique(np.linspace(0, size, min(size, most), endpoint=False).astype(np.intp))


def _errors(expected: Array, actual: Array, element_type: ElementType) -> npt.NDArray[np.float64]:
    """Absolute errors; infinite where one side alone is not finite."""
    wide = np.complex128 if element_type.is_complex else np.float64
    with np.errstate(all="ignore"):
        e, a = expected.astype(wide), actual.astype(wide)
        errors: npt.NDArray[np.float64] = np.abs(e - a)
    errors[(e == a) | (np.isnan(e) & np.isnan(a))] = 0
    errors[np.isnan(errors)] = np.inf
    return errors
