"""What inputs exercise of the decisions that only the tested program has: a direction, a limit, a guard.

A compiler rewrites decisions, and so does a fault. What only the optimised text asks is not among the
decisions of the reference, all of which may be covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from hlotool.errors import HlotoolError
from hlotool.replay.covering import CHEAP
from hlotool.replay.devices.runners import OneDevice
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.records import ModuleRecord
from hlotool.replay.trials import Trial
from hlotool.workers.work_limit import TooMuchWork, work_limit

if TYPE_CHECKING:
    from hlotool.coverage.coverage import Coverage
    from hlotool.coverage.records import CoverageRecord

#: Looks without anything new after which no further one is taken: each is a run.
_PATIENCE: Final = 4


def with_coverage_of_tested(
    row: ModuleRecord, options: ReplayOptions, reference: Program, tested: Program, trials: Sequence[Trial]
) -> ModuleRecord:
    """The row, with the coverage of what only the tested program decides, where that can be told.

    Args:
        row: of the comparison.
        options: of the user, who may want no coverage.
        reference: the program as it should be.
        tested: the program in question.
        trials: ordinary ones, on which both ran.
    """
    is_alone = isinstance(reference.runner, OneDevice) and isinstance(tested.runner, OneDevice)
    if options.coverage is False or not is_alone or tested.module is reference.module or not trials:
        return row
    try:
        found = _observed(reference, tested, trials)
    except HlotoolError:
        return row
    return msgspec.structs.replace(row, coverage_tested=found)


def _observed(reference: Program, tested: Program, trials: Sequence[Trial]) -> CoverageRecord | None:
    # Imported where it is needed: every worker would pay for it as it starts.
    from hlotool.analysis.questions import question, questions
    from hlotool.coverage.coverage import ProgramDecisions, coverage_record
    from hlotool.coverage.observer import Instrumented

    known = questions(ProgramDecisions(reference.module).calls)
    instrumented = Instrumented(tested.module)
    calls = instrumented.program.calls
    instrumented.program.keep(lambda d: d.is_open and question(d.instruction, calls) not in known)
    if not instrumented.program.decisions:
        return None
    coverage: Coverage | None = None
    idle = 0
    for trial in trials:
        before = coverage
        try:
            with work_limit(CHEAP):
                coverage = instrumented.run(trial.arguments, before)
        except TooMuchWork:
            continue  # it may never end where the reference does: that is a finding elsewhere
        idle = 0 if before is None or coverage.seen != before.seen else idle + 1
        if idle >= _PATIENCE or coverage.covered == coverage.total:
            break
    return None if coverage is None else coverage_record(coverage)
