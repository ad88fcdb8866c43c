"""Which decisions of a program need inputs most: those that the other program lacks, then open ones.

A compiler that is right keeps what a program decides, or decides it otherwise for a reason. So a comparison
with another direction or constant, a guard that is gone and a limit that only one side has are asked about
before everything else. Nothing of this accuses anybody: it says where to look first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.decisions import Decision, Kind, decisions
from hlotool.analysis.questions import asks, question, questions
from hlotool.coverage.outcomes import outcome_tests
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.workers.work_limit import spend

#: How soon what an instruction decides is asked about: what the other program has not, what no run has shown
#: yet, all else.
NO_COUNTERPART, OPEN, LATER = range(3)

#: Decisions that operands alone do not tell, or that are looked at in a run as a whole.
_OF_RUNS: Final = frozenset({Kind.TRIP_COUNT, Kind.ORDER, Kind.TIES, Kind.NAN, Kind.OVERLAP})
#: Units of work of a look at a decision.
_LOOK: Final = 10_000


def ranked(
    calls: CallGraph, value_of: Callable[[Instruction], Array | None], other: CallGraph | None
) -> Callable[[Instruction], int]:
    """How soon what an instruction decides is to be asked about.

    Args:
        calls: of the program.
        value_of: the value of an instruction in a run on the plain arguments.
        other: of the program that it is compared with.
    """
    known = None if other is None else questions(other)
    deciding = list(decisions(calls))
    is_open = {d.instruction for d in deciding if _is_open(d, value_of)}
    is_seen = {d.instruction for d in deciding} - is_open

    def rank(instruction: Instruction) -> int:
        if known is not None and asks(instruction) and question(instruction, calls) not in known:
            return NO_COUNTERPART
        return LATER if instruction in is_seen else OPEN

    return rank


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
