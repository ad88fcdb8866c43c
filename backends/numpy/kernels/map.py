"""Elementwise application of a computation, and loops over a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.backends.numpy.run import Run
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, array_shapes


@lowers("map")
def map_elements(instruction: Instruction, lowering: Lowering) -> Kernel:
    """`to_apply` of the corresponding elements of all operands. XLA: operation_semantics.md#map."""
    apply = lanes(instruction.computation("to_apply"), lowering)

    def kernel(*operands: Array) -> Array:
        return apply(*operands)[0]

    return kernel


@lowers("scan")
def scan(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A loop over one dimension of the inputs with carried values.

    Operands are inputs and initial carries; `to_apply(slices…, carries…)` returns the output slices and the
    new carries, `num_carries` of them. The slices lack the scanned dimension. The results are the stacked
    outputs and the last carries. `is_reverse` walks from the end; outputs keep the positions of their inputs.

    XLA: hlo_instructions.h (HloScanInstruction); measured on jaxlib 0.10.2, CPU.
    """
    axis = _scanned_axis(instruction, lowering)
    plan = lowering.plan(instruction.computation("to_apply"))
    carry_count = instruction.integer("num_carries", 0)
    input_count = len(instruction.operands) - carry_count
    backwards = instruction.flag("is_reverse")
    shapes = array_shapes(instruction.shape)
    output_shapes = shapes[: len(shapes) - carry_count]

    def function(values: list[Any], run: Run) -> tuple[Any, ...]:
        rows = [np.moveaxis(v, axis, 0) for v in values[:input_count]]
        carries = tuple(values[input_count:])
        length = len(rows[0])
        outputs = [np.empty(_sizes(s, axis, length), dtype_of(s.element_type)) for s in output_shapes]
        values.clear()
        for position in reversed(range(length)) if backwards else range(length):
            results = plan([*(r[position, ...] for r in rows), *carries], run)
            for output, result in zip(outputs, results):
                output[position, ...] = result
            carries = results[len(outputs) :]
        return (*(np.moveaxis(o, 0, axis) for o in outputs), *carries)

    return Calling(function)


def _scanned_axis(instruction: Instruction, lowering: Lowering) -> int:
    dimensions = instruction.integers("dimensions", (0,))
    if len(dimensions) != 1:
        raise lowering.unsupported(instruction, f"a scan over dimensions {dimensions}")
    axis: int = dimensions[0]
    return axis


def _sizes(shape: ArrayShape, axis: int, length: int) -> tuple[int, ...]:
    """Dimensions of an output with the scanned one first."""
    others = [size for dim, size in enumerate(shape.dims) if dim != axis]
    return (length, *others)
