"""Results of library calls: a few arrays, then memory that the library works in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlotool.backends.numpy.lowering import Lowering
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

#: From the arrays that a library computes to the value of its call.
Assemble = Callable[[Sequence[Any]], Any]


def result_shapes(instruction: Instruction, lowering: Lowering) -> list[ArrayShape]:
    """The shapes of all results, workspace included."""
    shape = instruction.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    arrays = [part for part in parts if isinstance(part, ArrayShape)]
    if len(arrays) < len(parts):
        raise lowering.unsupported(instruction, f"a library call with results of shape {shape}")
    return arrays


def result_types(instruction: Instruction, lowering: Lowering) -> list[ElementType]:
    """The element types of all results, workspace included."""
    return [shape.element_type for shape in result_shapes(instruction, lowering)]


def assembler(instruction: Instruction, lowering: Lowering) -> Assemble:
    """The function that puts computed arrays first and fills the rest of the tuple with zeros.

    None stands for an array that the library leaves undefined; it becomes zeros as well. Workspace takes no
    memory here.
    """
    shapes = result_shapes(instruction, lowering)
    if isinstance(instruction.shape, ArrayShape):
        return lambda values: values[0]
    zeros = [np.broadcast_to(np.zeros((), dtype_of(s.element_type)), s.dims) for s in shapes]

    def assemble(values: Sequence[Any]) -> Any:
        computed = [zero if value is None else value for value, zero in zip(values, zeros)]
        return tuple(computed + zeros[len(computed) :])

    return assemble
