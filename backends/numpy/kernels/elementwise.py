"""Elementwise operations of one and two operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import narrow, widen
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape


@lowers("add")
def add(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Sum; integers wrap, pred is `or`. XLA: operation_semantics.md#add."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape):
        raise lowering.unsupported(instruction, f"add of {shape}")
    element_type = shape.element_type
    if not element_type.is_narrow_float:
        return np.add

    def kernel(a: Any, b: Any) -> Any:
        return narrow(np.add(widen(a, element_type), widen(b, element_type)), element_type)

    return kernel
