"""Points at which arguments are equal, or are constants or between them: where ties and thresholds tell.

What a point shows of numbers that are none of real numbers does not count, nor that it was covered. What such
points show has to show twice, but where it was solved for: of numbers that are 0 or alike many hide a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from hlotool.errors import BackendFailed, HlotoolError
from hlotool.replay.exact.arguments import Meeting, Options
from hlotool.replay.exact.covering import Further, one_sided
from hlotool.replay.exact.result import LeafResult, Relation
from hlotool.replay.exact.sides import Watched
from hlotool.replay.exact.solving import Start, solved_points
from hlotool.workers.work_limit import UNITS_PER_SECOND, TooMuchWork, spend, work_done, work_limit

#: Points at which numbers meet: what of them is taken in any case, and at most; those in a row that show
#: nothing new, until no more are tried; those with NaN and infinity.
_FIRST: Final = 2
_MOST_MEETINGS: Final = 64
_FRUITLESS: Final = 6
_SPECIALS: Final = 6
#: Points that must have shown a side by which numbers meet.
_TIMES: Final = 2
#: Work that they may be: of small programs they are all taken.
_MEETING_WORK: Final = 0.006 * UNITS_PER_SECOND


class Meetings:
    """Takes such points for two programs that are equal so far.

    Args:
        at: every leaf at the first point of some options; none where they are no real numbers.
        watched: both programs.
        options: of the comparison.
        before: what points on the other sides of decisions found: no difference.
    """

    def __init__(
        self,
        at: Callable[[Options], Sequence[LeafResult]],
        watched: Sequence[Watched],
        options: Options,
        before: Further,
    ) -> None:
        self._at = at
        self._watched = watched
        self._options = options
        self._before = before
        self._found = list(before.found)
        self._left = before.one_sided
        self._fruitless = 0
        self._shown_by: Meeting | None = None

    def further(self, turns: int, start: Start | None) -> Further:
        """What they show.

        Args:
            turns: so many points have all the numbers in turn.
            start: of points that are solved for; None where there are none.
        """
        if not any(program.asks_of_floats for program in self._watched):
            return self._before
        if not self._meet(turns) and (start is None or not self._solve(start)):
            self._meet_specials()
        around = self._before.around if self._shown_by is None else 0.0
        return Further(self._found, around, self._left, self._shown_by)

    def _meet(self, turns: int) -> bool:
        """Whether a point shows a difference."""
        end = work_done() + _MEETING_WORK
        for number in range(_MOST_MEETINGS):
            is_enough = number >= _FIRST and work_done() > end
            is_over = number >= _FIRST + 2 * turns and (not self._left or self._fruitless >= _FRUITLESS)
            if is_enough or is_over:
                return False
            if self._differs(Meeting(number), _TIMES):
                return True
        return False

    def _solve(self, start: Start) -> bool:
        """Whether a point that is solved for shows a difference; programs that are much work have none."""
        end = work_done() + _MEETING_WORK
        try:
            with work_limit(_MEETING_WORK):
                for meeting in solved_points(self._at, self._watched, start):
                    if self._differs(meeting, 1, start.options.seed):
                        return True
                    if work_done() > end:
                        return False
        except (TooMuchWork, HlotoolError) as error:
            _pass_on(error)
        return False

    def _meet_specials(self) -> None:
        for number in range(_SPECIALS):
            if any(side.asks_for_specials for side in self._left):
                self._differs(Meeting(number, specials=True), 1)

    def _differs(self, meeting: Meeting, times: int, seed: int | None = None) -> bool:
        """Whether both programs differ at a point; a side counts that so many of them showed."""
        own = self._options.seed + self._options.trials + len(self._found) + 1
        point = replace(self._options, seed=own if seed is None else seed, trials=1, meeting=meeting)
        forget = [program.remembered() for program in self._watched]
        try:
            with work_limit(_MEETING_WORK):
                leaves = self._at(point)
        except (TooMuchWork, HlotoolError) as error:
            _pass_on(error)
            leaves = ()
        if any(leaf.relation is not Relation.EQUAL for leaf in leaves):
            self._found.append(leaves)
            self._shown_by = meeting
            return True
        news = [one(times if leaves else 0) for one in forget]
        if leaves:
            self._found.append(leaves)
            self._left = one_sided(self._watched)
        self._fruitless = 0 if any(news) else self._fruitless + 1
        return False


def _pass_on(error: BaseException) -> None:
    """Raise what is no matter of one point."""
    if isinstance(error, TooMuchWork):
        spend(0)  # raises again where somebody else's limit is reached
    elif isinstance(error, BackendFailed) and error.here:
        raise error
