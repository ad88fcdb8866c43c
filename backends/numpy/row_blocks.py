"""Functions of rows applied to some rows at a time, so that what they need on the way stays small."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hlotool.backends.numpy.threads import each, spans
from hlotool.ir.dtypes import Array

#: Elements of one operand that are worked on together, unless a row is longer.
_ELEMENTS = 1 << 16


def by_rows(function: Callable[[Sequence[Array]], Sequence[Array]], arrays: Sequence[Array]) -> list[Array]:
    """`function(arrays)`, computed in parts.

    Args:
        function: looks at each row, which is what lies along the last dimension, on its own. The leading
            dimensions of its results are those of its operands.
        arrays: the operands, of equal leading dimensions.
    """
    *leading, _ = arrays[0].shape
    parts = max(a.size for a in arrays) // _ELEMENTS + 1
    if parts == 1 or max(leading, default=1) == 1:
        return list(function(arrays))
    axis = leading.index(max(leading))
    first, *others = ((slice(None),) * axis + (span,) for span in spans(leading[axis], parts))
    values = function([a[first] for a in arrays])
    results = [np.empty((*leading, v.shape[-1]), v.dtype) for v in values]
    _store(results, first, values)
    each(lambda rows: _store(results, rows, function([a[rows] for a in arrays])), others)
    return results


def _store(results: Sequence[Array], rows: tuple[slice, ...], values: Sequence[Array]) -> None:
    for result, value in zip(results, values):
        result[rows] = value
