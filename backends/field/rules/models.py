"""Operations of libraries that are arithmetic: the numpy backend's models, evaluated on words."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.field.black_boxes import without_model
from hlotool.backends.field.held import is_complex, is_float
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.numbers import NoMeaning, Numbers
from hlotool.backends.field.registry import call_means, means, plain
from hlotool.backends.numpy.kernels import libraries
from hlotool.backends.numpy.precision import compute_dtype
from hlotool.backends.numpy.registry import RULES, Kernel
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, TupleShape

#: Their models are made of what `Numbers` understands.
_TARGETS = (
    "__cublas$gemm",
    "__cublas$lt$groupedMatmul",
    "__cublas$lt$matmul",
    "__cublas$lt$matmul$f8",
    "__cublas$lt$matmul$mx",
    "__cudnn$convBackwardFilter",
    "__cudnn$convBackwardInput",
    "__cudnn$convBiasActivationForward",
    "__cudnn$convForward",
    "__cudnn$fmhaScaleBiasSoftmax",
    "__cudnn$fmhaScaleBiasSoftmaxBackward",
    "__cudnn$fmhaSoftmax",
    "__cudnn$fmhaSoftmaxBackward",
    "__cudnn$norm",
    "__onednn$convolution",
    "__onednn$layernorm",
    "__onednn$matmul",
    "__onednn$softmax",
)


@means("batch-norm-grad", "batch-norm-inference", "batch-norm-training", "ragged-dot", "scaled-dot")
@call_means(*_TARGETS)
def model(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's model.

    Raises:
        Unsupported: the numpy backend has none for this configuration, or it does something else than
            arithmetic.
    """
    if any(is_complex(i.shape) for i in (instruction, *instruction.operands)):
        if instruction.opcode != "custom-call":
            raise lowering.unsupported(instruction, "no meaning on complex numbers in the field")
        return without_model(instruction, lowering)
    libraries.load()
    compute = plain(RULES[instruction.opcode](instruction, lowering.numbers))
    trial, shape = lowering.trial, instruction.shape
    dtypes = [compute_dtype(o.element_type) if is_float(o.shape) else None for o in instruction.operands]

    def kernel(*values: Any) -> Any:
        operands = [
            value if dtype is None else Numbers(np.asarray(value), dtype, trial)
            for value, dtype in zip(values, dtypes)
        ]
        try:
            return _words(compute(*operands), shape)
        except NoMeaning as error:
            raise lowering.unsupported(instruction, str(error)) from error

    def _words(value: Any, part: Shape) -> Any:
        if isinstance(part, TupleShape):
            return tuple(_words(element, own) for element, own in zip(value, part.elements))
        if isinstance(value, Numbers):
            return value.words
        is_memory = isinstance(part, ArrayShape) and part.element_type.is_floating
        return lowering.constants.words(np.asarray(value)) if is_memory else value

    return kernel
