"""What a program does in a process that has run nothing else.

Memory that a compiler reads and nobody wrote holds what earlier programs left in their process. Where a
reduction judges hundreds of programs in one, a small one may fail by that alone, and not where it is filed.
"""

from __future__ import annotations

from collections.abc import Callable

from hlotool.replay.options import PRELOAD, ReplayOptions
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.case_worker import FUNCTION, Outcome
from hlotool.search.reduction.oracle import BackendJudge
from hlotool.workers.executor import Limits
from hlotool.workers.pool import Pool

#: What is said of a program that does not fail there.
ONLY_AFTER_OTHERS = "failed only where others had run in the same process"
#: Processes that a program has to fail in: one that fails only sometimes may be right in the first.
_MOST = 3


def failing_afresh(
    case: Case, options: ReplayOptions, limits: Limits, fails: Callable[[Outcome], bool]
) -> Outcome | None:
    """How a program fails in a fresh process; None where it does not, asked three times.

    Args:
        case: the program and its arguments.
        options: which backends, and how they are compared.
        limits: of the process.
        fails: whether an outcome is the failure in question.
    """
    outcomes = (asked_afresh(case, options, limits) for _ in range(_MOST))
    return next(filter(fails, outcomes), None)


def asked_afresh(case: Case, options: ReplayOptions, limits: Limits, function: str = FUNCTION) -> Outcome:
    """What a program does in a fresh process.

    Args:
        case: the program and its arguments.
        options: which backends, and how they are compared.
        limits: of the process.
        function: see `BackendJudge`.
    """
    with Pool(limits, PRELOAD, options.backend) as pool:
        [(_, outcome)] = BackendJudge(pool, options, 1, function).run([case])
    return outcome
