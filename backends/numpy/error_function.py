"""The error function of f32, twice as fast as SciPy's and without its import, which takes 0.2 s.

x · P(u) / Q(u) in f64, with u = 2 x² / limit² - 1 between -1 and 1; beyond the limit erf is 1 in f32. The
coefficients are the minimax fit of erf(x) / x by polynomials of degree 6 and 5: relative error 1.9e-9, a
thirtieth of the rounding to f32. Of all f32 one in fifty is not rounded correctly, and none is off by 0.54
units in the last place.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from hlotool.backends.numpy.foreign import foreign
from hlotool.ir.dtypes import Array

_LIMIT = 3.95

#: Coefficients, highest power first.
_NUMERATOR = (
    -4.2357656301445706e-05,
    0.0016889050566225824,
    0.029365112531473166,
    0.12616706066977657,
    0.26770121396732033,
    0.286596230517612,
    0.1337797642289072,
)
_DENOMINATOR = (
    0.026250694805855804,
    0.20124708208975248,
    0.6487359635413629,
    1.1016933115395953,
    0.9871482515472253,
    0.37368568844654526,
)

#: Elements that are worked on together: their powers stay in the nearest cache.
_PART = 1 << 13


def erf(x: Array) -> Array:
    """The error function of f32 or f64, arrays or scalars."""
    if (own := foreign(x)) is not None:
        known: Array = own.erf()
        return known
    if x.dtype != np.float32:
        precise: Array = import_module("scipy.special").erf(x)
        return precise
    if x.size <= _PART:
        return _rational(x)
    flat = x.reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, _PART):
        result[start : start + _PART] = _rational(flat[start : start + _PART])
    return result.reshape(x.shape)


def _rational(x: Array) -> Array:
    y = np.clip(x, -_LIMIT, _LIMIT).astype(np.float64)
    u = y * y
    u *= 2 / _LIMIT**2
    u -= 1
    value = _polynomial(u, _NUMERATOR)
    value /= _polynomial(u, _DENOMINATOR)
    value *= y
    rounded: Array = value.astype(np.float32)
    return rounded


def _polynomial(u: Array, coefficients: Sequence[float]) -> Any:
    """By Horner's rule."""
    first, *others, last = coefficients
    value = u * first
    for coefficient in others:
        value += coefficient
        value *= u
    value += last
    return value
