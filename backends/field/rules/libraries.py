"""Custom calls, and opcodes that never look at a float: the numpy backend's models and kernels, evaluated
on words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.numbers import NoMeaning, Numbers
from hlotool.backends.field.registry import CALL_MEANINGS, call_means, means, plain
from hlotool.backends.field.unknown import without_model
from hlotool.backends.field.values import held_instruction, is_complex, is_float
from hlotool.backends.field.words import NAN
from hlotool.backends.numpy.custom_calls import expansion_of, why_opaque
from hlotool.backends.numpy.kernels import libraries
from hlotool.backends.numpy.precision import compute_dtype
from hlotool.backends.numpy.registry import RULES, Calling, Kernel
from hlotool.facts.recognition import TRANSPARENT
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, Shape, TupleShape


@means("custom-call")
def custom_call(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """By the target; a library's routine that is no arithmetic on its operands is a black box.

    Raises:
        Unsupported: a call into Python, whose results need not be a function of its operands.
    """
    target = instruction.custom_call_target
    if target in CALL_MEANINGS:
        return CALL_MEANINGS[target](instruction, lowering)
    expansion = expansion_of(instruction)
    if expansion is not None:
        return Calling(lowering.plan(expansion))
    if "callback" in target:
        raise lowering.unsupported(instruction, f"{target!r} {why_opaque(target)}")
    return without_model(instruction, lowering)


@call_means(*TRANSPARENT, "PadToStatic", "SliceToDynamic")
def transparent(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel, which moves data or only passes it on."""
    return RULES["custom-call"](held_instruction(instruction), lowering)


@call_means("AllocateBuffer", "CreateBuffer")
def allocate_buffer(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Memory before anything is written to it: NaN."""
    if not is_float(instruction.shape):
        raise lowering.unsupported(instruction, f"memory of shape {instruction.shape}")
    dims = instruction.dims
    return lambda: np.full(dims, NAN)


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


@means(
    *opcodes_with(Trait.FORWARDS, Trait.ORDERS, Trait.FINISHES, Class.TUPLE),
    *("conditional", "copy", "get-dimension-size", "infeed", "map", "outfeed", "send", "send-done"),
    *("set-dimension-size", "while"),
)
def untyped(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel, which does not depend on types; what it calls is lowered to the field."""
    return RULES[instruction.opcode](instruction, lowering)


@means(
    *opcodes_with(Trait.MOVES, Class.INDEXING, Class.COLLECTIVE)
    - opcodes_with(Trait.APPLIES, Trait.FINISHES)
    - {"bitcast", "copy"},
    *("async-start", "copy-start", "dynamic-reshape", "recv", "recv-done", "scan", "select"),
)
def held(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel for arrays of what holds the values: it allocates, or counts bytes."""
    return RULES[instruction.opcode](held_instruction(instruction), lowering)


@means("all-reduce", "all-reduce-start", "reduce-scatter")
def reductions_over_devices(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel, which applies `to_apply` to one copy after the other."""
    return RULES[instruction.opcode](instruction, lowering)


@means("call", "fusion")
def called(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The called computation's result; constants that are passed to it are folded inside."""
    (computation,) = instruction.called
    plan = lowering.called_plan(computation, instruction.operands)
    return Calling(plan)


@means("reduce-precision")
def unrounded(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The same number: nothing is rounded."""
    return _same


def _same(value: Any) -> Any:
    return value
