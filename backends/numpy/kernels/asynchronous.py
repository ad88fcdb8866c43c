"""Asynchronous calls: executed where they start."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.kernels.control import called_plan
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.backends.numpy.run import Run
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, TupleShape


@lowers("async-start")
def async_start(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands, the called computation's result, and contexts. XLA: docs/async_ops.md."""
    plan = called_plan(instruction, "calls", lowering)
    contexts = _contexts(instruction, lowering)

    def kernel(values: list[Any], run: Run) -> Any:
        operands = tuple(values)
        return (operands, plan(values, run), *contexts)

    return Calling(kernel)


@lowers("async-update")
def async_update(instruction: Instruction, lowering: Lowering) -> Kernel:
    """What the start returned. XLA: docs/async_ops.md."""
    return lambda started: started


@lowers("async-done")
def async_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The result of the call. XLA: docs/async_ops.md."""
    return lambda started: started[1]


def _contexts(instruction: Instruction, lowering: Lowering) -> tuple[Any, ...]:
    if not isinstance(instruction.shape, TupleShape) or len(instruction.shape.elements) < 2:
        raise lowering.unsupported(instruction, f"async-start of shape {instruction.shape}")
    return tuple(blank(shape) for shape in instruction.shape.elements[2:])


def blank(shape: Shape) -> Any:
    """A value of `shape` that means nothing: zeros, tokens."""
    if isinstance(shape, TupleShape):
        return tuple(blank(element) for element in shape.elements)
    if isinstance(shape, ArrayShape):
        return np.zeros(shape.dims, dtype_of(shape.element_type))
    return TOKEN
