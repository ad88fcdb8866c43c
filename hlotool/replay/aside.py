"""What is said of a module beside the verdict: what its inputs exercise, where NaN and infinity come from.

The runs of the reference are looked at once their rows are made: nothing of this changes a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from hlotool.backends.base import Value
from hlotool.errors import HlotoolError
from hlotool.ir.types import ShapeIndex
from hlotool.locate.records import NonFiniteRecord
from hlotool.locate.store import Budget
from hlotool.replay.covering import Covering
from hlotool.replay.leaf_records import array_leaves
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program
from hlotool.replay.records import ModuleRecord, SpecialValuesRecord
from hlotool.replay.trials import Trial
from hlotool.workers.work_limit import UNITS_PER_SECOND, in_words
from hlotool.workers.worker import tell

#: Looked into unasked where a run is no more work: every value on the way is kept.
_CHEAP = 5 * UNITS_PER_SECOND
#: Seconds of an unasked look: more than it takes after so little work.
_MOST_SECONDS = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
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

    def ran(self, run: Ran) -> None:
        """The reference has run; its rows follow."""
        self._run, self._found = run, None
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


@dataclass(frozen=True, slots=True)
class _Found:
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
    from hlotool.locate.execution import execute
    from hlotool.locate.nonfinite import births
    from hlotool.replay.devices.looking import leaves_of, on_every_device

    tell("looking for what makes NaN and infinity")
    execution = execute(on_every_device(run.program, run.trial.arguments), budget)
    try:
        return list(births(execution, leaves_of(run.program, outputs)))
    finally:
        execution.close()
