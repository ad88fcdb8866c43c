"""Activation functions that libraries apply to a product before they round it.

All take arrays in the type of the computation (f32 or f64) and keep it; NaN stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.error_function import erf
from hlotool.ir.dtypes import Array

Activation = Callable[[Array], Array]


def identity(x: Array) -> Array:
    """No activation."""
    return x


def relu(x: Array) -> Array:
    """max(x, 0)."""
    return floats.maximum(x, x.dtype.type(0))


def relu6(x: Array) -> Array:
    """x clamped to 0 … 6."""
    return np.clip(x, x.dtype.type(0), x.dtype.type(6))


def leaky_relu(slope: float) -> Activation:
    """x where it is positive, slope · x elsewhere."""
    return lambda x: np.where(x > 0, x, x * x.dtype.type(slope))


def elu(x: Array) -> Array:
    """x where it is positive, exp(x) - 1 elsewhere."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, x.dtype.type(0))))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return np.asarray(floats.logistic(x))


def silu(x: Array) -> Array:
    """x · sigmoid(x), also called swish."""
    return x * sigmoid(x)


def tanh(x: Array) -> Array:
    """The hyperbolic tangent."""
    return np.asarray(np.tanh(x))


def gelu_tanh(x: Array) -> Array:
    """x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³))): the approximation that most programs mean by GELU."""
    scalar = x.dtype.type
    inner = scalar(sqrt(2 / pi)) * (x + scalar(0.044715) * x * x * x)
    return np.asarray(scalar(0.5) * x * (scalar(1) + np.tanh(inner)))


def gelu_erf(x: Array) -> Array:
    """x/2 · (1 + erf(x / sqrt(2)))."""
    scalar = x.dtype.type
    return np.asarray(scalar(0.5) * x * (scalar(1) + erf(x * scalar(sqrt(0.5)))))
