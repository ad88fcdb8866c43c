"""What libraries do to a product before they round it: activations; a bias and operations of oneDNN in order.

XLA: service/cpu/onednn_util.cc (PopulateOneDnnPostOps), service/cpu/onednn_config.proto.
oneDNN documentation: Primitive Attributes, Post-ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.backend_configs import Config
from hlotool.backends.numpy.error_function import erf
from hlotool.ir.dtypes import Array

# Activations: all take arrays in the type of the computation (f32 or f64) and keep it; NaN stays NaN.

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
    result: Array = floats.logistic(x)
    return result


def silu(x: Array) -> Array:
    """x · sigmoid(x), also called swish."""
    return x * sigmoid(x)


def tanh(x: Array) -> Array:
    """The hyperbolic tangent."""
    result: Array = np.tanh(x)
    return result


def gelu_tanh(x: Array) -> Array:
    """x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³))): the approximation that most programs mean by GELU."""
    scalar = x.dtype.type
    inner = scalar(sqrt(2 / pi)) * (x + scalar(0.044715) * x * x * x)
    result: Array = scalar(0.5) * x * (scalar(1) + np.tanh(inner))
    return result


def gelu_erf(x: Array) -> Array:
    """x/2 · (1 + erf(x / sqrt(2)))."""
    scalar = x.dtype.type
    result: Array = scalar(0.5) * x * (scalar(1) + erf(x * scalar(sqrt(0.5))))
    return result


#: `OneDnnFusionConfig.FusionKind` by number.
_KINDS = (
    "UNDEFINED",
    "BIAS",
    "RELU",
    "TANH",
    "GELU_ERF",
    "GELU_TANH",
    "BINARY_ADD",
    "LINEAR",
    "ELU",
    "RELU6",
    "SIGMOID",
    "SUM",
    "SWISH",
)
_ACTIVATIONS: dict[str, Activation] = {
    "RELU": relu,
    "TANH": tanh,
    "GELU_ERF": gelu_erf,
    "GELU_TANH": gelu_tanh,
    "ELU": elu,
    "RELU6": relu6,
    "SIGMOID": sigmoid,
    "SWISH": silu,
}
_ADDING = ("BIAS", "BINARY_ADD", "SUM")

#: From the kind of an operation that adds an operand, and that operand, to what broadcasts.
Spread = Callable[[str, Array], Array]


@dataclass(frozen=True, slots=True)
class PostOps:
    """The list of operations.

    Attributes:
        kinds: their names, in order.
        factors: of the LINEAR ones, in order.
    """

    kinds: Sequence[str]
    factors: Sequence[float]

    @property
    def operands(self) -> int:
        """How many operands they add."""
        return sum(kind in _ADDING for kind in self.kinds)

    def apply(self, product: Array, operands: Sequence[Array], spread: Spread) -> Array:
        """The product after all operations, in its own type; a bias is added before all others."""
        addends = iter(operands)
        factors = iter(self.factors)
        added = {at: spread(k, next(addends)) for at, k in enumerate(self.kinds) if k in _ADDING}
        for at, kind in enumerate(self.kinds):
            if kind == "BIAS":
                product = product + added[at]
        for at, kind in enumerate(self.kinds):
            if kind in ("BINARY_ADD", "SUM"):
                product = product + added[at]
            elif kind == "LINEAR":
                product = product * product.dtype.type(next(factors))
            elif kind != "BIAS":
                product = _ACTIVATIONS[kind](product)
        return product


def read_post_ops(config: Config) -> PostOps:
    """The `fusions` of an operation's config.

    Raises:
        Unsupported: the config is of a version that named them otherwise, or malformed.
    """
    fusions = config.section("fusions")
    if "fused_ops" in config or "fused_ops" in fusions:
        raise config.unsupported("fused_ops of an early version of XLA in the backend config")
    kinds = fusions.choices("ops", _KINDS)
    # Until 2026 as bits.
    factors = fusions.numbers("alpha") or [float_of(bits) for bits in fusions.integers("alpha_typecast")]
    if "UNDEFINED" in kinds or kinds.count("LINEAR") > len(factors):
        raise config.unsupported(f"fused operations {', '.join(kinds)} in the backend config")
    return PostOps(kinds, factors)


def float_of(bits: int) -> float:
    """The f32 whose bits, read as s32, are `bits`: configs store floats so."""
    return float(np.array(bits, np.int32).view(np.float32))
