"""Which decisions of a program need inputs most: those that the other program lacks, then open ones.

A compiler that is right keeps what a program decides, or decides it otherwise for a reason. So a comparison
with another direction or constant, a guard that is gone and a limit that only one side has are asked about
before everything else. Nothing of this accuses anybody: it says where to look first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.decisions import Decision, Kind, decisions
from hlotool.analysis.flow import handed_on
from hlotool.coverage.outcomes import outcome_tests
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.workers.work_limit import spend

#: How soon what an instruction decides is asked about: what the other program has not, what no run has shown
#: yet, all else.
NO_COUNTERPART, OPEN, LATER = range(3)

#: Decisions that operands alone do not tell, or that are looked at in a run as a whole.
_OF_RUNS: Final = frozenset({Kind.TRIP_COUNT, Kind.ORDER, Kind.TIES, Kind.NAN, Kind.OVERLAP})
#: Units of work of a look at a decision, and of finding what an instruction asks.
_LOOK: Final = 10_000
_ASKED: Final = 2_000
#: They hand a constant on.
_MOVED: Final = frozenset({"broadcast", "reshape", "bitcast", "convert", "copy", "transpose", "slice"})
#: Steps from an operand back to the constant that it is.
_MOST_STEPS: Final = 20
#: Directions of a comparison whose operands change places.
_FLIPPED: Final[Mapping[str, str]] = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}

_Signature: TypeAlias = "tuple[object, ...]"


def ranked(
    calls: CallGraph, value_of: Callable[[Instruction], Array | None], other: CallGraph | None
) -> Callable[[Instruction], int]:
    """How soon what an instruction decides is to be asked about.

    Args:
        calls: of the program.
        value_of: the value of an instruction in a run on the plain arguments.
        other: of the program that it is compared with.
    """
    known = None if other is None else signatures(other)
    is_open = {d.instruction for d in decisions(calls) if _is_open(d, value_of)}

    def rank(instruction: Instruction) -> int:
        if known is not None and _asks(instruction) and _signature(instruction, calls) not in known:
            return NO_COUNTERPART
        return OPEN if instruction in is_open or not _asks(instruction) else LATER

    return rank


def signatures(calls: CallGraph) -> frozenset[_Signature]:
    """What the decisions of a program ask, whatever their operands are called."""
    asking = [i for i in calls.home if _asks(i)]
    spend(_ASKED * len(asking))
    return frozenset(_signature(instruction, calls) for instruction in asking)


def _is_open(decision: Decision, value_of: Callable[[Instruction], Array | None]) -> bool:
    """Whether an outcome of sensible inputs did not occur when the instruction first ran."""
    if decision.kind in _OF_RUNS or not decision.is_open:
        return False
    spend(_LOOK)
    values = [value_of(operand) for operand in decision.instruction.operands]
    if any(values[number] is None for number in decision.operands):
        return False
    tests = outcome_tests(decision)
    with np.errstate(all="ignore"):
        return not all(tests[outcome](values) for outcome in decision.outcomes)


def _asks(instruction: Instruction) -> bool:
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


def _signature(instruction: Instruction, calls: CallGraph) -> _Signature:
    """The question: opcode, direction, types, and the constants among the operands."""
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
    kind = instruction.shape.element_type if isinstance(instruction.shape, ArrayShape) else None
    return (instruction.opcode, direction, kind, repeated, *operands)


def _operand(operand: Instruction, calls: CallGraph) -> object:
    """The number that an operand always is, or its element type."""
    kind = operand.shape.element_type if isinstance(operand.shape, ArrayShape) else None
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
