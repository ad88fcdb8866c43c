"""Matrix products as BLAS libraries compute them, and what they do before they round: bias, activations,
oneDNN's list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import pi, sqrt
from typing import Any

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.backend_configs import Config, result_shapes, result_types
from hlotool.backends.numpy.contraction import operand_dtype, rounded, widened
from hlotool.backends.numpy.floats import erf
from hlotool.backends.numpy.kernels.dot import DotDimensions
from hlotool.backends.numpy.lowering import Lowering
from hlotool.facts.retyping import declared_types
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

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


def gelu_tanh(x: Array, factor: float = sqrt(2 / pi), cubic: float = 0.044715) -> Array:
    """x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³))): the approximation that most programs mean by GELU."""
    scalar = x.dtype.type
    inner = scalar(factor) * (x + scalar(cubic) * x * x * x)
    result: Array = scalar(0.5) * x * (scalar(1) + np.tanh(inner))
    return result


def gelu_tanh_in(kind: ElementType) -> Activation:
    """`gelu_tanh` with the constants that a program in `kind` has.

    XLA takes these for those of the library: gemm_rewriter.cc, BcastConstScalarNear.
    """
    of_kind = dtype_of(kind).type
    return partial(gelu_tanh, factor=float(of_kind(sqrt(2 / pi))), cubic=float(of_kind(0.044715)))


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


_GEMM_ACTIVATIONS: dict[str, Activation] = {"": identity, "RELU": relu, "GELU": gelu_tanh, "SILU": silu}

#: `GemmBackendConfig.Epilogue` by number.
_EPILOGUES = (
    "DEFAULT",
    "BIAS",
    "RELU",
    "BIAS_RELU",
    "GELU",
    "GELU_AUX",
    "BIAS_GELU",
    "BIAS_GELU_AUX",
    "SILU",
    "BIAS_SILU",
)


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What follows the product.

    Attributes:
        bias: a vector is added along the dimension of the result that varies fastest.
        activation: applied then.
        aux: what the activation was applied to is a second result.
    """

    bias: bool
    activation: Activation
    aux: bool


@dataclass(frozen=True, slots=True)
class Gemm:
    """A product with its scalars and epilogue.

    Attributes:
        dimensions: of the product A · B.
        kinds: element types of all operands of the call.
        dtype: of the computation.
        alpha: factor of the product.
        beta: factor of C; 0 means that there is no operand C.
        epilogue: what follows.
        result: shape of D.
        result_kinds: element types of all results.
    """

    dimensions: DotDimensions
    kinds: Sequence[ElementType]
    dtype: np.dtype[Any]
    alpha: Any
    beta: Any
    epilogue: Epilogue
    result: ArrayShape
    result_kinds: Sequence[ElementType]

    @property
    def addends(self) -> int:
        """Number of operands that are added: C, then the bias."""
        return bool(self.beta) + self.epilogue.bias

    def fits(self, a: Sequence[int], b: Sequence[int]) -> bool:
        """Whether operands of dimensions `a` and `b` give the declared result."""
        dims = self.dimensions
        batch = [a[d] for d in dims.lhs_batch] or [b[d] for d in dims.rhs_batch]
        free = [a[d] for d in dims.lhs_free(len(a))] + [b[d] for d in dims.rhs_free(len(b))]
        contracted = [a[d] for d in dims.lhs_contracting] == [b[d] for d in dims.rhs_contracting]
        return contracted and (*batch, *free) == self.result.dims

    def widen(self, operands: Sequence[Array]) -> list[Array]:
        """All operands in the type of the computation."""
        return [widened(o, k, self.dtype) for o, k in zip(operands, self.kinds)]

    def product(self, a: Array, b: Array) -> Array:
        """alpha · A B, in the type of the computation."""
        if not self.alpha:
            return np.zeros(self.result.dims, self.dtype)
        product = self.dimensions.contract(a, b)
        return product if self.alpha == 1 else product * self.alpha

    def complete(self, product: Array, addends: Sequence[Array]) -> tuple[Array, Array]:
        """(D, what the activation was applied to), in the type of the computation."""
        rest = list(addends)
        if self.beta:
            product = product + rest.pop(0) * self.beta
        if self.epilogue.bias:
            product = product + self._spread(rest.pop(0))
        return self.epilogue.activation(product), product

    def outputs(self, product: Array, addends: Sequence[Array]) -> list[Array]:
        """D, and what the activation was applied to if it is asked for, rounded."""
        values = self.complete(product, addends)
        count = 2 if self.epilogue.aux else 1
        return [rounded(v, k) for v, k in zip(values[:count], self.result_kinds)]

    def _spread(self, bias: Array) -> Array:
        """The vector, broadcastable against D.

        Where D was padded it may be shorter, and what lies behind it in memory is added: nothing reads that.
        XLA: gemm_rewriter.cc, FuseVectorBiasAdd below a slice.
        """
        if not bias.ndim:
            return bias
        axis = self.result.minor_to_major[0]
        place = np.arange(self.result.dims[axis])
        if bias.size < place.size:
            last = bias.size - 1
            bias = np.where(place <= last, bias.take(np.minimum(place, last), axis=0), np.nan)
        return bias.reshape([-1 if d == axis else 1 for d in range(self.result.rank)])


def read_gemm(instruction: Instruction, lowering: Lowering, config: Config) -> Gemm:
    """What a `GemmBackendConfig` and the shapes of the call say."""
    kinds = instruction.operand_types
    result = result_shapes(instruction, lowering)[0]
    dtype = operand_dtype(result.element_type, *kinds[:2])
    alpha = complex(config.needed("alpha_real").number("alpha_real"), config.number("alpha_imag"))
    return Gemm(
        dimensions=read_dot_dimensions(config.section("dot_dimension_numbers")),
        kinds=kinds,
        dtype=dtype,
        alpha=dtype.type(alpha if dtype.kind == "c" else alpha.real),
        beta=dtype.type(config.number("beta")),
        epilogue=_read_epilogue(config, declared_types(instruction)[1][0]),
        result=result,
        result_kinds=result_types(instruction, lowering),
    )


def read_dot_dimensions(config: Config) -> DotDimensions:
    """The dimensions that a `DotDimensionNumbers` proto names."""
    names = ("lhs_batch", "rhs_batch", "lhs_contracting", "rhs_contracting")
    return DotDimensions(*(config.integers(f"{name}_dimensions") for name in names))


def _read_epilogue(config: Config, declared: ElementType) -> Epilogue:
    name = config.choice("epilogue", _EPILOGUES)
    parts = [part for part in name.split("_") if part not in ("DEFAULT", "BIAS", "AUX")]
    activation = _GEMM_ACTIVATIONS["".join(parts)]
    if activation is gelu_tanh and declared.bits > 8:
        activation = gelu_tanh_in(declared)
    return Epilogue("BIAS" in name, activation, name.endswith("_AUX"))
