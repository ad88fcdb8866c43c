"""What a program does in a process that has run nothing else.

Memory that a compiler reads and nobody wrote holds what earlier programs left in their process. Where a
reduction judges hundreds of programs in one, a small one may fail by that alone, and not where it is filed.
"""

from __future__ import annotations

from hlotool.replay.options import PRELOAD, ReplayOptions
from hlotool.search.reduction.case import Case
from hlotool.search.reduction.case_worker import Outcome
from hlotool.search.reduction.oracle import FUNCTION, BackendJudge
from hlotool.workers.executor import Limits
from hlotool.workers.pool import Pool


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
