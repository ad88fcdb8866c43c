"""What a replay says beside the verdict: what inputs exercise, where NaN comes from, what float8 loses.

The runs of the reference are looked at once their rows are made: nothing of this changes a verdict. To see
what inputs exercise, the reference program is run once more and its decisions are observed. A compiler
rewrites decisions, and so does a fault: what only the optimised text asks (a direction, a limit, a guard)
is not among the decisions of the reference, all of which may be covered, and is observed apart.
`--fp8` has what the reference program loses to float8 counted in one more run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from hlotool.backends.base import Probe, Value
from hlotool.errors import HlotoolError
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.types import ShapeIndex
from hlotool.judge.records import NonFiniteRecord
from hlotool.runs.leaves import array_leaves
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import Program
from hlotool.runs.records import ModuleRecord, SpecialValuesRecord
from hlotool.runs.runners import OneDevice
from hlotool.runs.trials import Trial
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, in_words, work_limit
from hlotool.system.worker import tell

if TYPE_CHECKING:
    from hlotool.inputs.coverage.observer import Coverage, Instrumented
    from hlotool.inputs.coverage.records import CoverageRecord


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
            from hlotool.inputs.coverage.observer import coverage_record

            for trial in self._waiting:
                # Every look is a run: unusual outcomes alone are not worth one.
                if self._coverage is None or self._coverage.covered < self._coverage.total:
                    self._observe(trial)
            self._waiting.clear()
            if self._coverage is not None:
                self._record = coverage_record(self._coverage, lists_all=bool(self._options.coverage))
        return msgspec.structs.replace(row, coverage=self._record, coverage_missing=self._missing)

    def _observed(self, trial: Trial) -> Coverage:
        # Imported where it is needed: every worker would pay for it as it starts.
        from hlotool.inputs.coverage.observer import Instrumented, Observer, merged
        from hlotool.runs.observed_programs import subject

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
    from hlotool.facts.decisions import question, questions
    from hlotool.inputs.coverage.observer import Instrumented, ProgramDecisions, coverage_record

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


#: Looked into unasked where a run is no more work: every value on the way is kept.
_CHEAP = 5 * UNITS_PER_SECOND
#: Seconds of an unasked look: more than it takes after so little work.
_MOST_SECONDS = 20.0


class Ran(Struct, frozen=True, eq=False):
    """A run of a program.

    Attributes:
        program: that ran.
        trial: what it ran on.
        value: what it returned.
        work: units of work that it was.
    """

    program: Program
    trial: Trial
    value: Value
    work: int

    def special_values(self) -> Iterator[SpecialValuesRecord]:
        """The arrays of the result that are not finite everywhere."""
        for index, shape, array in array_leaves(self.program.runner.result, self.value):
            if shape.element_type.is_inexact:
                nan = int(np.count_nonzero(np.isnan(array)))
                inf = int(np.count_nonzero(np.isinf(array)))
                if nan or inf:
                    yield SpecialValuesRecord(index=list(index), total=array.size, nan=nan, inf=inf)


class Aside:
    """Findings on the runs of one reference program.

    Args:
        reference: the program.
        options: of the user.
    """

    def __init__(self, reference: Program, options: ReplayOptions) -> None:
        self._options = options
        self._covering = Covering(reference, options)
        self._run: Ran | None = None
        self._special: list[SpecialValuesRecord] = []
        self._found: _Found | None = None
        self._float8: dict[str, Any] | None = None

    def ran(self, run: Ran) -> None:
        """The reference has run; its rows follow."""
        self._run, self._found, self._float8 = run, None, None
        self._special = list(run.special_values())
        self._covering.ran(run.trial, run.work)

    def ran_on_further(self, trial: Trial, work: int) -> None:
        """The reference has run on a further set of ordinary inputs, which was so much work."""
        self._covering.ran(trial, work)

    def briefly_noted(self, row: ModuleRecord) -> ModuleRecord:
        """The row with what is seen in the last result of the reference, without looking any further."""
        return msgspec.structs.replace(row, special_values=self._special)

    def noted(self, row: ModuleRecord) -> ModuleRecord:
        """The row with what is known of the last run of the reference."""
        row = self._covering.noted(row)
        if self._options.fp8 and self._run is not None:
            if self._float8 is None:
                self._float8 = _float8_of(self._run)
            row = msgspec.structs.replace(row, **self._float8)
        if self._run is None or not self._special:
            return row
        if self._found is None:
            self._found = _looked_into(self._run, self._special, self._options)
        return _with(row, self._special, self._found)

    def with_origins(self, row: ModuleRecord, tested: Ran) -> ModuleRecord:
        """The row of a tested program, with what its NaNs come from where only it has any."""
        is_one_sided = any(leaf.nan_mismatches or leaf.inf_mismatches for leaf in row.leaves)
        if self._special or row.divergence is not None or not is_one_sided:
            return row
        special = list(tested.special_values())
        return _with(row, special, _looked_into(tested, special, self._options)) if special else row


def _float8_of(run: Ran) -> dict[str, Any]:
    """What a program loses to float8 in a run, as fields of a row."""
    # Imported where it is needed: few programs have float8.
    from hlotool.runs.fp8 import looked_at

    if not isinstance(run.program.runner, OneDevice):
        return {"fp8_missing": "the program runs on several devices"}
    try:
        tell("looking at what is lost to float8")
        return {"fp8": looked_at(run.program.module, run.trial.arguments)}
    except HlotoolError as error:
        return {"fp8_missing": str(error)}
    except Exception as error:
        # The verdict stands without it.
        return {"fp8_missing": f"internal error of --fp8, please report: {type(error).__name__}: {error}"}


class _Found(Struct, frozen=True):
    """Where special values come from, or why that is not known."""

    origins: list[NonFiniteRecord]
    missing: str = ""


def _with(row: ModuleRecord, special: list[SpecialValuesRecord], found: _Found) -> ModuleRecord:
    return msgspec.structs.replace(
        row, special_values=special, origins=found.origins, origins_missing=found.missing
    )


def _looked_into(run: Ran, special: list[SpecialValuesRecord], options: ReplayOptions) -> _Found:
    """The first instructions that make special values; the program is executed once more and recorded."""
    is_asked = bool({"nan", "inf"} & set(options.fail_on))
    if run.work > _CHEAP and not is_asked:
        return _Found([], f"the program {in_words(run.work)}: only looked for with --fail-on nan,inf")
    try:
        budget = Budget() if is_asked else Budget(seconds=_MOST_SECONDS)
        found = _origins(run, [tuple(one.index) for one in special], budget)
    except HlotoolError as error:
        return _Found([], str(error))
    except Exception as error:
        # The verdict stands without it.
        return _Found([], f"internal error of the search, please report: {type(error).__name__}: {error}")
    return _Found(found, "" if found else "no instruction that was looked at makes them")


def _origins(run: Ran, outputs: list[ShapeIndex], budget: Budget) -> list[NonFiniteRecord]:
    # Imported where it is needed: most results are finite.
    from hlotool.judge.locate.recording import execute
    from hlotool.judge.locate.report import births
    from hlotool.runs.observed_programs import leaves_of, on_every_device

    tell("looking for what makes NaN and infinity")
    execution = execute(on_every_device(run.program, run.trial.arguments), budget)
    try:
        return list(births(execution, leaves_of(run.program, outputs)))
    finally:
        execution.close()
