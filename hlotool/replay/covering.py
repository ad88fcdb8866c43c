"""What a replay exercised: the reference program is run once more and its decisions are observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from hlotool.backends.base import Probe, Value
from hlotool.errors import HlotoolError
from hlotool.replay.devices.runners import OneDevice
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.records import ModuleRecord
from hlotool.replay.trials import Trial
from hlotool.workers.work_limit import UNITS_PER_SECOND, TooMuchWork, in_words, work_limit
from hlotool.workers.worker import tell

if TYPE_CHECKING:
    from hlotool.coverage.coverage import Coverage
    from hlotool.coverage.observer import Instrumented
    from hlotool.coverage.records import CoverageRecord

#: Observed unasked where a run of the reference is no more work: observing takes about as long again.
CHEAP = 5 * UNITS_PER_SECOND


class Covering:
    """Coverage of one reference program, over all trials so far.

    Args:
        program: the reference.
        options: of the user, who may want it always, never, or (by default) where it is cheap.
    """

    def __init__(self, program: Program, options: ReplayOptions) -> None:
        self._program = program
        self._options = options
        self._coverage: Coverage | None = None
        self._waiting: list[Trial] = []
        self._instrumented: Instrumented | None = None
        self._record: CoverageRecord | None = None
        self._missing = ""

    def ran(self, trial: Trial, work: int) -> None:
        """The reference has run on a trial; it is looked at with the next row.

        Args:
            trial: what the reference has run on.
            work: units of work that it was.
        """
        if self._options.coverage is None and work > CHEAP:
            self._missing = f"the reference {in_words(work)}: only looked at with --coverage"
        elif self._options.coverage is not False:
            self._waiting.append(trial)

    def _observe(self, trial: Trial) -> None:
        try:
            tell("looking at what the inputs exercise")
            self._coverage = self._observed(trial)
        except HlotoolError as error:
            self._missing = str(error)
        except Exception as error:
            # The verdict stands without it.
            self._missing = f"internal error of coverage, please report: {type(error).__name__}: {error}"

    def noted(self, row: ModuleRecord) -> ModuleRecord:
        """The row, with the coverage by all trials so far."""
        if self._waiting:
            from hlotool.coverage.coverage import coverage_record

            for trial in self._waiting:
                # Every look is a run: what is left of odd outcomes alone is not worth one.
                if self._coverage is None or self._coverage.covered < self._coverage.total:
                    self._observe(trial)
            self._waiting.clear()
            if self._coverage is not None:
                self._record = coverage_record(self._coverage, lists_all=bool(self._options.coverage))
        return msgspec.structs.replace(row, coverage=self._record, coverage_missing=self._missing)

    def _observed(self, trial: Trial) -> Coverage:
        # Imported where it is needed: every worker would pay for it as it starts.
        from hlotool.coverage.coverage import merged
        from hlotool.coverage.observer import Instrumented, Observer
        from hlotool.replay.devices.looking import subject

        if self._instrumented is None:
            self._instrumented = Instrumented(self._program.module)
        if isinstance(self._program.runner, OneDevice):
            return self._instrumented.run(trial.arguments, self._coverage)
        decisions = self._instrumented.program
        observers: list[Observer] = []

        def watch(devices: Sequence[Sequence[Value]]) -> Sequence[Probe]:
            observers.extend(Observer(decisions, self._coverage) for _ in devices)
            return observers

        subject(self._program, self._program, trial.arguments).run(decisions.module, watch)
        return merged(observer.coverage() for observer in observers)


# What inputs exercise of the decisions that only the tested program has: a direction, a limit, a guard.
#
# A compiler rewrites decisions, and so does a fault. What only the optimised text asks is not among the
# decisions of the reference, all of which may be covered.

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
