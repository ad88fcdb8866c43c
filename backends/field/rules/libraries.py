"""Custom calls."""

from __future__ import annotations

import numpy as np

from hlotool.analysis.custom_calls import TRANSPARENT
from hlotool.backends.field.black_boxes import without_model
from hlotool.backends.field.held import held_instruction, is_float
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import CALL_MEANINGS, call_means, means
from hlotool.backends.field.words import NAN
from hlotool.backends.numpy.custom_calls import expansion_of, why_opaque
from hlotool.backends.numpy.registry import RULES, Calling, Kernel
from hlotool.ir.module import Instruction


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
