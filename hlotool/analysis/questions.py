"""What decisions ask, whatever their operands are called: to find those that another program has not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import handed_on
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape
from hlotool.workers.work_limit import spend

#: Units of work of finding what an instruction asks.
_ASKED: Final = 2_000
#: They hand a constant on.
_MOVED: Final = opcodes_with(Trait.REGROUPS) | {"convert", "slice"}
#: Steps from an operand back to the constant that it is.
_MOST_STEPS: Final = 20
#: Directions of a comparison whose operands change places.
_FLIPPED: Final[Mapping[str, str]] = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}

#: Equal ones ask the same of operands of the same types.
Question: TypeAlias = "tuple[object, ...]"


def questions(calls: CallGraph) -> frozenset[Question]:
    """All that a program asks."""
    asking = [instruction for instruction in calls.home if asks(instruction)]
    spend(_ASKED * len(asking))
    return frozenset(question(instruction, calls) for instruction in asking)


def asks(instruction: Instruction) -> bool:
    """Whether an instruction decides by what it is given, or has a point that it is made for."""
    return instruction.opcode in _ASKING


#: Opcodes that decide by what they are given.
_ASKING: Final = frozenset(
    {
        *("compare", "select", "clamp", "maximum", "minimum", "convert", "abs", "sign", "conditional"),
        *("divide", "remainder", "floor", "ceil", "round-nearest-even", "round-nearest-afz"),
        *("shift-left", "shift-right-arithmetic", "shift-right-logical", "is-finite"),
        *("dynamic-slice", "dynamic-update-slice", "gather", "scatter", "sort"),
        *("exponential", "exponential-minus-one", "log", "log-plus-one", "sqrt", "rsqrt", "tanh", "logistic"),
    }
)


def question(instruction: Instruction, calls: CallGraph) -> Question:
    """Opcode, direction, types, and the constants among the operands."""
    operands = [_operand(operand, calls) for operand in instruction.operands]
    direction = ""
    if instruction.opcode == "compare":
        direction = instruction.text("direction")
        if isinstance(operands[0], float) and not isinstance(operands[1], float):
            operands.reverse()
            direction = _FLIPPED.get(direction, direction)
    elif instruction.opcode in ("maximum", "minimum"):
        operands.sort(key=str)
    repeated = len(set(instruction.operands)) < len(instruction.operands)
    kind = instruction.array_type
    return (instruction.opcode, direction, kind, repeated, *operands)


def _operand(operand: Instruction, calls: CallGraph) -> object:
    """The number that an operand always is, or its element type."""
    kind = operand.array_type
    for _ in range(_MOST_STEPS):
        literal = operand.literal
        if literal is not None and isinstance(operand.shape, ArrayShape) and not literal.has_elided:
            flat = np.asarray(literal.array).reshape(-1)
            is_one = bool(flat.size) and not np.iscomplexobj(flat) and bool((flat == flat[0]).all())
            return float(flat[0]) if is_one else kind
        if operand.opcode in _MOVED:
            operand = operand.operands[0]
            continue
        sources = list(handed_on((operand, ()), calls))
        if len(sources) != 1 or sources[0][1]:
            return kind
        operand = sources[0][0]
    return kind
