"""Matrix products as BLAS libraries for GPUs compute them.

D = activation(alpha · A B + beta · C + bias): everything in one type (f32 for narrow floats, the type of the
result for integers), rounded once at the end. Like BLAS, C is not read when beta is 0, nor A and B when
alpha is. TF32 and other approximations that a precision config permits are not imitated.

XLA: service/gpu/matmul_utils.cc, transforms/gemm_rewriter.cc, stream_executor/cuda/cuda_blas_lt.cc.
NVIDIA: cuBLAS documentation, cublasLtMatmul and cublasLtEpilogue_t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy.backend_configs import Config
from hlotool.backends.numpy.contraction import operand_dtype, rounded, widened
from hlotool.backends.numpy.kernels.dot import DotDimensions
from hlotool.backends.numpy.library_results import result_shapes, result_types
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.post_ops import Activation, gelu_tanh, identity, relu, silu
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType

_ACTIVATIONS: dict[str, Activation] = {"": identity, "RELU": relu, "GELU": gelu_tanh, "SILU": silu}

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
        """The vector, broadcastable against D."""
        if not bias.ndim:
            return bias
        axis = self.result.minor_to_major[0]
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
        epilogue=_read_epilogue(config),
        result=result,
        result_kinds=result_types(instruction, lowering),
    )


def read_dot_dimensions(config: Config) -> DotDimensions:
    """The dimensions that a `DotDimensionNumbers` proto names."""
    names = ("lhs_batch", "rhs_batch", "lhs_contracting", "rhs_contracting")
    return DotDimensions(*(config.integers(f"{name}_dimensions") for name in names))


def _read_epilogue(config: Config) -> Epilogue:
    name = config.choice("epilogue", _EPILOGUES)
    parts = [part for part in name.split("_") if part not in ("DEFAULT", "BIAS", "AUX")]
    return Epilogue("BIAS" in name, _ACTIVATIONS["".join(parts)], name.endswith("_AUX"))
