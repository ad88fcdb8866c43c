"""What a replay exercised: the reference program is run once more and its decisions are observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from hlotool.backends.base import Probe, Value
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.replay.devices.runners import Probes
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.records import ModuleRecord
from hlotool.replay.trials import Trial
from hlotool.workers.worker import tell

if TYPE_CHECKING:
    from hlotool.coverage.coverage import Coverage
    from hlotool.coverage.records import CoverageRecord

_BACKEND = "numpy"
#: Observed unasked where the reference ran no longer: observing takes about as long again.
_CHEAP_SECONDS = 5.0


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
        self._record: CoverageRecord | None = None
        self._missing = ""

    def observe(self, trial: Trial, whole: Value | None, ran: float) -> None:
        """See what a trial exercises.

        Args:
            trial: what the reference has run on.
            whole: the result on global arrays, where the reference is a partitioned stage.
            ran: seconds that it took.
        """
        wanted = self._options.coverage
        if wanted is False:
            return
        if wanted is None and ran > _CHEAP_SECONDS:
            self._missing = f"the reference ran for {ran:.0f} s: only looked at with --coverage"
            return
        try:
            tell("looking at what the inputs exercise")
            self._coverage = self._observed(trial, whole)
        except HlotoolError as error:
            self._missing = str(error)
        except Exception as error:
            # The verdict stands without it.
            self._missing = f"internal error of coverage, please report: {type(error).__name__}: {error}"
        else:
            from hlotool.coverage.words import coverage_record

            self._record = coverage_record(self._coverage, lists_all=bool(wanted))

    def noted(self, row: ModuleRecord) -> ModuleRecord:
        """The row, with the coverage."""
        return msgspec.structs.replace(row, coverage=self._record, coverage_missing=self._missing)

    def _observed(self, trial: Trial, whole: Value | None) -> Coverage:
        # Imported where it is needed: every worker would pay for it as it starts.
        from hlotool.coverage.coverage import merged
        from hlotool.coverage.observer import Observer
        from hlotool.coverage.program import ProgramDecisions

        before = self._coverage
        decisions = before.program if before is not None else ProgramDecisions(self._program.module)
        observers: list[Observer] = []

        def probes(count: int) -> list[Probe]:
            observers.extend(Observer(decisions, before) for _ in range(count))
            return list(observers)

        self._run(trial.arguments, whole, probes)
        return merged(observer.coverage() for observer in observers)

    def _run(self, arguments: Any, whole: Value | None, probes: Probes) -> None:
        runner = self._program.runner
        if self._options.reference != _BACKEND:
            runner = self._program.compiled_by(get_backend(_BACKEND))
        runner.run(arguments, whole, probes)
