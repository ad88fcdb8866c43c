"""How many further inputs a replay may try, and others where the ordinary ones say nothing.

Work decides, so that equal commands try the same sets (`system.resources`). A clock stands behind it, for
what the prices of work know nothing of, and where the user gives seconds.

The inputs of people's programs are finite and make finite results. Where some output is nothing but NaN on
both sides, other generated inputs are tried: numbers between 0 and 1 meet what no analysis of the program
found out, a sum that goes into a square root, a base of a power.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from hlotool.errors import HlotoolError, Miscompiled
from hlotool.inputs.adversarial.sets import InputSet
from hlotool.inputs.given import Keep
from hlotool.ir.module import Module
from hlotool.ir.types import ShapeIndex
from hlotool.runs.leaves import array_leaves
from hlotool.runs.options.kept import ReplayOptions, RunOptions, budget_limits
from hlotool.runs.program import Program
from hlotool.runs.records import GENERATED
from hlotool.runs.runners import Runner, parameter_difference
from hlotool.runs.task import Task
from hlotool.runs.trials import Trial, generated
from hlotool.system.resources import (
    UNITS_PER_SECOND,
    TooMuchWork,
    TooSlow,
    spend,
    time_limit,
    work_done,
    work_limit,
)

#: Of the work that a module was without them: a run takes less than twice as long with them, looking at what
#: they exercise included.
_FACTOR: Final = 0.5
#: Work that they may be in any case: some forty runs of a small module, and what it takes to solve for its
#: decisions. Small modules are read and run in some milliseconds, in which no set is made; the command itself
#: takes longer to start than all of theirs together.
_LEAST: Final = 0.038 * UNITS_PER_SECOND
#: Of what further sets may be together: what one run may be. Some numbers let a loop go round for ever.
_RUN_SHARE: Final = 0.2
#: Runs of most sets are as much work as the plain one, give or take some iterations.
_RUNS: Final = 4
#: Of the time limit per module: what further sets may take at most. The judge has its share before them. Work
#: ends them long before, but on a machine that is very slow, or where its prices are far from true.
_SHARE: Final = 0.3


class Allowed(Struct, frozen=True):
    """What further sets of one module may cost.

    Attributes:
        work: in units; infinite where all of them are wanted, or a clock of the user's decides.
        seconds: of the clock.
        by_clock: the user gave the seconds: that they end the sets is no news.
        run: units of work of one run on the plain set; none may be very many times that.
    """

    work: float
    seconds: float
    by_clock: bool = False
    run: float = 0.0

    @property
    def most_run(self) -> float:
        """Units of work that one run may be, before any was too much."""
        return max(_RUN_SHARE * self.work, _RUNS * self.run)


def allowed_for_sets(options: ReplayOptions, spent: int, programs: int = 1, run: int = 0) -> Allowed:
    """What further sets of a module may cost.

    Args:
        options: of the user.
        spent: units of work that the module was without them.
        programs: that share the time limit of the module.
        run: units of work of one run on the plain set.
    """
    limit = options.timeout if isinstance(options, RunOptions) else float("inf")
    most = _SHARE * limit / programs
    if options.thorough:
        return Allowed(float("inf"), most, run=run)
    if options.budget is None:
        return Allowed(max(_FACTOR * spent, _LEAST / programs), most, run=run)
    work, seconds = budget_limits(options.budget, spent)
    return Allowed(work, min(most, seconds), by_clock=seconds < float("inf"), run=run)


class Limits:
    """Of the further sets of one module, from now on.

    Attributes:
        allowed: what they may cost.
    """

    def __init__(self, allowed: Allowed) -> None:
        self.allowed = allowed
        self._work = work_done() + allowed.work
        self._given_back = allowed.work
        self._most_run = allowed.most_run
        self._end = time.monotonic() + allowed.seconds
        self._is_late = False

    def give_back(self, work: int) -> None:
        """What was no set, but a judgement that is worth more than they are: as much again at most."""
        self._work += min(work, self._given_back)
        self._given_back -= min(work, self._given_back)

    def are_reached(self) -> bool:
        """Whether nothing further may begin."""
        self._is_late = self._is_late or time.monotonic() > self._end
        return self._is_late or work_done() > self._work

    @contextmanager
    def hold(self, is_run: bool = False) -> Iterator[None]:
        """A block that ends with TooMuchWork or TooSlow where it goes beyond them.

        Args:
            is_run: it is one run, which may never end.
        """
        left = self._work - work_done()
        if is_run:
            left = min(left, self._most_run)
        try:
            with time_limit(self._end - time.monotonic()), work_limit(left):
                yield
        except TooSlow:
            self._is_late = True
            raise
        except TooMuchWork:
            # Where one loop does not end, many others may not: together they are not all that is done.
            self._most_run = max(self._most_run / 2, _RUNS * self.allowed.run) if is_run else self._most_run
            raise

    @property
    def cut(self) -> str:
        """That the clock ended the sets though there was work left for them, in words; else empty."""
        if not self._is_late or self.allowed.by_clock:
            return ""
        return f"the clock ended them after {self.allowed.seconds:.0f} s: elsewhere there may be more"


def in_budget(sets: Iterable[InputSet], allowed: Allowed) -> Iterator[tuple[InputSet, bool]]:
    """Sets, and whether a replay would have come to each of them.

    The caller runs one program on each; a replay runs two. Of seconds that the user gave every
    one counts as the work that is done in it.

    Args:
        sets: made when they are asked for.
        allowed: what they may cost.
    """
    most = min(allowed.work, allowed.seconds * UNITS_PER_SECOND)
    spent = 0
    before = work_done()
    for one in sets:
        spent += work_done() - before
        before = work_done()
        yield one, spent <= most
        spent += 2 * (work_done() - before)
        before = work_done()


# A loop that ends in the reference and not in the tested program: a finding, that says on which side.

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


#: Not 0, near which quotients and logarithms become large.
_POSITIVE: Final = (0.125, 1.0)


def more_telling(
    task: Task, reference: Program, programs: Sequence[Program], trial: Trial, expected: Any, keep: Keep
) -> Trial | None:
    """A trial with fewer outputs that are nothing but NaN; None where this one has none, or none has fewer.

    Args:
        task: with the user's options. An `input_range` of the user's stays.
        reference: the program that gave `expected`.
        programs: that are tested. Where one of them has a number for what is NaN in `expected`, that is a
            difference, and no other inputs are asked for.
        trial: on generated inputs; any other one stays.
        expected: what the reference returned.
        keep: what becomes of large arrays.
    """
    if trial.inputs.origin != GENERATED or trial.result is not None:
        return None
    empty = _nothing_but_nan(reference.runner, expected)
    if not empty or not all(_is_as_empty(reference, program, trial, expected, empty) for program in programs):
        return None
    best, fewest = None, len(empty)
    for options in _others(task.options):
        other = generated(reference.module, options, reference.runner.copies, keep)
        count = len(_nothing_but_nan(reference.runner, reference.runner.run(other.arguments).value))
        if count < fewest:
            best, fewest = _noted(other, options, task.options, len(empty)), count
        if not count:
            break
    return best


def _others(options: ReplayOptions) -> Iterator[ReplayOptions]:
    if options.input_range is None:
        yield msgspec.structs.replace(options, input_range=_POSITIVE)
    yield from (msgspec.structs.replace(options, seed=options.seed + n) for n in (1, 2))


def _noted(trial: Trial, options: ReplayOptions, asked: ReplayOptions, count: int) -> Trial:
    bounds = options.input_range if options.input_range != asked.input_range else None
    outputs = "1 output is" if count == 1 else f"{count} outputs are"
    description = f"{trial.inputs.description} (with seed {asked.seed} alone {outputs} nothing but NaN)"
    record = msgspec.structs.replace(trial.inputs, description=description, input_range=bounds)
    return Trial(trial.arguments, record, trial.name, trial.result, trial.origin)


def _is_as_empty(
    reference: Program, program: Program, trial: Trial, expected: Any, empty: set[ShapeIndex]
) -> bool:
    """Whether a tested program has no number either where the reference has none."""
    if parameter_difference(reference.runner, program.runner):
        return False
    try:
        return empty <= _nothing_but_nan(program.runner, program.runner.run(trial.arguments, expected).value)
    except HlotoolError:
        return False


def _nothing_but_nan(runner: Runner, value: Any) -> set[ShapeIndex]:
    """The outputs that have elements, and no number."""
    return {
        index
        for index, shape, array in array_leaves(runner.result, value)
        if shape.element_type.is_inexact and array.size and bool(np.isnan(array).all())
    }
