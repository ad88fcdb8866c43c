"""Where the values of floats decide: comparisons, choices by size, roundings to integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, array_shapes
from hlotool.ir.walk import reachable

#: What looks at the size of a float.
_DECIDING: Final = frozenset(
    {
        "abs",
        "bitcast-convert",
        "ceil",
        "clamp",
        "compare",
        "convert",
        "floor",
        "is-finite",
        "maximum",
        "minimum",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "sign",
        "sort",
        "topk",
    }
)
#: Callers that apply a computation to many elements, one after the other.
_APPLYING: Final = frozenset(
    {
        "all-reduce",
        "map",
        "reduce",
        "reduce-scatter",
        "reduce-window",
        "scan",
        "scatter",
        "select-and-scatter",
    }
)


def fewest_decided(module: Module) -> int | None:
    """Elements of the smallest decision about floats in `module`; None where it takes none.

    Decisions inside reducers count for as many elements as what they are applied to.
    """
    return min(_sizes(module), default=None)


def _sizes(module: Module) -> Iterator[int]:
    applied: set[Computation] = set()
    for instruction in module.instructions():
        if instruction.opcode in (*_APPLYING, "sort", "topk"):
            for computation in instruction.called:
                applied.update(reachable(computation))
    for computation in reachable(module.entry):
        for instruction in computation.instructions:
            if computation not in applied and _decides(instruction):
                yield max(shape.size for shape in array_shapes(instruction.operands[0].shape))


def _decides(instruction: Instruction) -> bool:
    if instruction.opcode in _APPLYING:
        return any(_decides(i) for c in instruction.called for i in c.instructions)
    if instruction.opcode not in _DECIDING or not instruction.operands:
        return False
    operand, shape = instruction.operands[0].shape, instruction.shape
    if not isinstance(operand, ArrayShape) or not operand.element_type.is_floating:
        return False
    if instruction.opcode in ("bitcast-convert", "convert"):
        return isinstance(shape, ArrayShape) and not shape.element_type.is_inexact
    # All of these are of constants: a limit that is compared with another one decides nothing.
    return any(o.opcode != "constant" for o in instruction.operands)
