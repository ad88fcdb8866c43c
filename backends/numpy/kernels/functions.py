"""Roots, exponentials, logarithms, trigonometry.

NumPy's functions, whose f32 versions are within 4 units in the last place and f64 versions within 1 to 4, as
are XLA's own polynomial approximations, with few exceptions (its f64 log-plus-one is up to 128 ulp off around
-0.41). Narrow types are computed in f32 and rounded once; XLA's CPU code generator computes f8 in f16, which
shows in three square roots of f8e3m4. Branch cuts of complex functions follow C99; see `complexes` for where
XLA's CPU code generator does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlotool.backends.numpy import complexes, error_function, floats
from hlotool.backends.numpy.elementwise import elementwise
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.module import Instruction

#: Functions that NumPy has for real and complex numbers; XLA's documentation has sections of these names.
_NUMPY: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log": np.log,
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


@lowers(*_NUMPY)
def numpy_function(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The function of that name."""
    function = _NUMPY[instruction.opcode]
    return elementwise(instruction, lowering, floating=function, complexes=function)


@lowers("log-plus-one")
def log_plus_one(instruction: Instruction, lowering: Lowering) -> Kernel:
    """log(1 + a), accurate for small a. XLA: operation_semantics.md#log1p."""
    return elementwise(instruction, lowering, floating=np.log1p, complexes=complexes.log1p)


@lowers("rsqrt")
def rsqrt(instruction: Instruction, lowering: Lowering) -> Kernel:
    """1 / sqrt(a); infinite at zero with the zero's sign. XLA: operation_semantics.md#rsqrt."""
    return elementwise(instruction, lowering, floating=floats.rsqrt, complexes=complexes.rsqrt)


@lowers("logistic")
def logistic(instruction: Instruction, lowering: Lowering) -> Kernel:
    """1 / (1 + exp(-a)). XLA: operation_semantics.md#logistic."""
    return elementwise(instruction, lowering, floating=floats.logistic, complexes=complexes.logistic)


@lowers("cbrt")
def cbrt(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The real cube root, negative for negative numbers. XLA: operation_semantics.md#cbrt."""
    return elementwise(instruction, lowering, floating=np.cbrt)


@lowers("erf")
def erf(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The error function. XLA: operation_semantics.md#erf."""
    return elementwise(instruction, lowering, floating=error_function.erf)


@lowers("atan2")
def atan2(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The angle of the point (b, a), as C's atan2. XLA: operation_semantics.md#atan2."""
    return elementwise(instruction, lowering, floating=np.arctan2, complexes=complexes.atan2)
