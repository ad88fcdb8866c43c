"""The fixed tolerances of XLA's own tools, as their literal comparison applies them.

An element of a float array is wrong when its error is over the absolute *and* over the relative bound; NaN
equals NaN, infinities equal themselves; everything else must be equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hlotool.ir.arrays import Array

#: Absolute and relative bound by tool.
BOUNDS = {"run_hlo_module": (1e-3, 1e-3), "hlo_isolation": (0.01, 0.1)}


def passes(expected: list[Array], actual: list[Array], bounds: tuple[float, float]) -> bool:
    """Whether a tool with these bounds is content."""
    return all(_leaf_passes(e, a, *bounds) for e, a in zip(expected, actual))


def _leaf_passes(expected: Array, actual: Array, absolute: float, relative: float) -> bool:
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return False
    if not is_inexact(expected.dtype):
        return bool(np.array_equal(expected, actual))
    if np.iscomplexobj(expected):
        parts = ((expected.real, actual.real), (expected.imag, actual.imag))
        return all(_floats_pass(e, a, absolute, relative) for e, a in parts)
    return _floats_pass(expected, actual, absolute, relative)


def _floats_pass(expected: Array, actual: Array, absolute: float, relative: float) -> bool:
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    same = (e == a) | (np.isnan(e) & np.isnan(a))
    with np.errstate(all="ignore"):
        error: npt.NDArray[np.float64] = np.abs(a - e)
        scaled = error / np.abs(e)
    bad = ~same & ~((error <= absolute) | (scaled <= relative))
    return not bad.any()


def is_inexact(dtype: np.dtype[np.generic]) -> bool:
    """Float or complex, those of ml_dtypes too."""
    return np.issubdtype(dtype, np.inexact) or dtype.name.startswith(("bfloat", "float"))
