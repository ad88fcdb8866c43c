"""A loop that ends in the reference and not in the tested program: a finding, that says on which side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hlotool.errors import Miscompiled
from hlotool.ir.module import Module
from hlotool.replay.program import Program
from hlotool.workers.work_limit import UNITS_PER_SECOND, TooMuchWork, spend, work_limit

#: No compiler makes a program so many times as much work, as the interpreter counts it.
_TIMES: Final = 100
#: Units of work that a program may be in any case, where the inputs are those that were asked for.
GIVEN: Final = 4 * UNITS_PER_SECOND
#: And where they are one of many sets: some hundred times what a small program is.
OF_SETS: Final = UNITS_PER_SECOND // 40


def most_work(work: int, least: int) -> int:
    """Units of work after which a program that has not ended does not end.

    Args:
        work: that the run of the reference on the same inputs was.
        least: that it may be in any case.
    """
    return max(_TIMES * work, least)


@contextmanager
def ends_like(reference: Program, program: Program, work: int, least: int = GIVEN) -> Iterator[None]:
    """A run of `program` that must come to its end, for that of the reference did.

    Only what runs in this process and has loops is stopped.

    Args:
        reference: has run on the same inputs.
        program: runs.
        work: units of work that the run of the reference was.
        least: that the program may be in any case.

    Raises:
        Miscompiled: it is stopped after many times the work of the reference.
    """
    if program.backend != reference.backend or not _has_loops(program.module):
        yield
        return
    try:
        with work_limit(most_work(work, least)):
            yield
    except TooMuchWork:
        spend(0)  # raises again where somebody else's limit is reached
        raise Miscompiled(
            f"{program.label} does not end where {reference.label} does: it was stopped after "
            f"{most_work(work, least) // max(1, work)} times the work of the latter"
        ) from None


def _has_loops(module: Module) -> bool:
    return any(instruction.opcode == "while" for instruction in module.instructions())
