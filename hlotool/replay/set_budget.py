"""How much work further sets of inputs may be, and how long they may take where that is far from enough.

Work decides, so that equal commands try the same sets (`workers.work_limit`). A clock stands behind it, for
what the prices of work know nothing of, and where the user gives seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hlotool.directed.sets import InputSet
from hlotool.errors import Miscompiled
from hlotool.ir.module import Module
from hlotool.replay.options import ReplayOptions, RunOptions, budget_limits
from hlotool.replay.program import Program
from hlotool.workers.work_limit import (
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


@dataclass(frozen=True, slots=True)
class Allowed:
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

    Whoever asks for the sets runs one program on each; a replay runs two. Of seconds that the user gave every
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
