"""The part of a suite that one worker process does: the trials of an opcode, or some of them."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hlotool.backends.registry import get_backend
from hlotool.conformance.running import ends_the_process, tried
from hlotool.conformance.trials import Trial, trials
from hlotool.report.conformance_records import ExaminedRecord


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """Trials of one opcode.

    Attributes:
        backend: as the command line names it.
        opcode: of the table of opcodes.
        kinds: element types of interest; empty for all.
        cases: random trials.
        seed: of these.
        first: number of the first trial that is to be run, from 0.
        last: number of the one after the last; None for all that there are.
    """

    backend: str
    opcode: str
    kinds: tuple[str, ...] = ()
    cases: int = 0
    seed: int = 0
    first: int = 0
    last: int | None = None

    def trials(self) -> list[Trial]:
        """What it says to run."""
        every = list(trials(self.opcode, frozenset(self.kinds), self.cases, self.seed))
        return every[self.first : self.last]

    def halves(self) -> Iterator[SuiteTask]:
        """Two tasks that do the same, of at least two trials each or of one; none where there is but one."""
        count = len(self.trials())
        if count > 1:
            middle = self.first + count // 2
            yield replace(self, last=middle)
            yield replace(self, first=middle, last=self.first + count)


def examine(task: SuiteTask) -> ExaminedRecord:
    """Run the trials of a task on its backend; called in a worker process, because a backend may die.

    Raises:
        UsageError: no such backend, or not with these options.
        BackendUnavailable: something that the backend needs is missing here.
        BackendFailed: this process is of no more use to the backend.
    """
    chosen, backend = task.trials(), get_backend(task.backend)
    try:
        return ExaminedRecord(trials=list(tried(chosen, backend)))
    except Exception as error:
        if ends_the_process(error):
            raise
        # What else a backend raises is part of the records.
        return ExaminedRecord(trials=[], fault=traceback.format_exc())
