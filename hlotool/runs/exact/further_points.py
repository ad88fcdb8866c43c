"""Further points for two programs that are equal so far: other sides of decisions, ties, thresholds.

Other sides: what a decision compares shows where its other side lies: a constant of 1e30 is reached by
numbers of about that size. So at each further point the numbers that a field has no sizes for lie just
above, or just below, what was compared (`Kappa`), and the arguments are new ones.

Solved points: numbers that are compared become equal, or lie beside and between the constants there. What
is compared is mostly a linear function of each argument: a secant through two points of the field has no
error, and gives the argument at which it is any number that is wanted. It starts from simple numbers, whose
products and quotients have the sizes that numbers have.

Meetings: points at which arguments are equal, or are constants or between them. What a point shows of
numbers that are none of real numbers does not count, nor that it was covered. What such points show has to
show twice, but where it was solved for: of numbers that are 0 or alike many hide a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from typing import Any, Final

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.meeting import Numbers, with_simple_floats
from hlotool.backends.field.words import Words
from hlotool.errors import BackendFailed, HlotoolError
from hlotool.ir.arrays import flatten, unflatten
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape
from hlotool.runs.exact.points import Meeting, Options
from hlotool.runs.exact.result import LeafResult, Relation
from hlotool.runs.exact.sides import Asked, OneSided, Watched
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, spend, work_done, work_limit

#: By how much the sizes at a point lie above or below what was compared: all of them do, and no factor of a
#: few bits between both brings them back.
_BESIDE: Final = 8.0
#: Sizes beyond have no f64.
_LARGEST: Final = 1000.0
#: Points in a row that show no new side, until no more are tried, and those for a single element: it has the
#: sign that it takes at every second point of a kind, of which there are two.
_LEAST, _FOR_ONE = 4, 16
#: Sizes that are waited for; points at most.
_MANY: Final = 3
_MOST: Final = 48


@dataclass(frozen=True, slots=True)
class Further:
    """What further points show.

    Attributes:
        found: every leaf at each of them.
        around: see `Options`; of the last one.
        one_sided: decisions that still went one way alone.
        meeting: see `Options`; of the last one.
    """

    found: Sequence[Sequence[LeafResult]] = ()
    around: float = 0.0
    one_sided: tuple[OneSided, ...] = ()
    meeting: Meeting | None = None


def one_sided(watched: Sequence[Watched]) -> tuple[OneSided, ...]:
    """The one-sided decisions of programs."""
    return tuple(chain.from_iterable(program.one_sided() for program in watched))


def _reachable(sides: Sequence[OneSided]) -> list[OneSided]:
    """Those that other sizes of floats may make go another way."""
    return [side for side in sides if side.was_asked and side.of_sizes]


def on_other_sides(
    at: Callable[[Options], Sequence[LeafResult]], watched: Sequence[Watched], options: Options
) -> Further:
    """Points until every decision went each of its ways, one shows a difference, or no more is reached.

    Args:
        at: every leaf at the first point of some options.
        watched: both programs.
        options: of the comparison; the points that it has are over.
    """
    found: list[Sequence[LeafResult]] = []
    around, fruitless = 0.0, 0
    left = one_sided(watched)
    most = _MOST if options.most_points is None else min(_MOST, options.most_points)
    # What is compared later has the sizes that further points gave it.
    compared = {side.identity: side.sizes for side in left}
    while (open_ := _reachable(left)) and len(found) < most:
        sizes = _sizes([replace(side, sizes=compared.get(side.identity, ())) for side in open_])
        if fruitless >= _patience(open_, sizes):
            break
        around = _around(sizes, fruitless)
        point = replace(options, seed=options.seed + options.trials + len(found), trials=1, around=around)
        try:
            found.append(at(point))
        except TooMuchWork:
            break
        except HlotoolError as error:
            if isinstance(error, BackendFailed) and error.here:
                raise
            break  # what cannot be evaluated there says nothing of the points before
        if any(leaf.relation is not Relation.EQUAL for leaf in found[-1]):
            break
        before, left = _count(left), one_sided(watched)
        fruitless = fruitless + 1 if _count(left) == before else 0
    return Further(found, around, left)


def _count(sides: Sequence[OneSided]) -> int:
    return sum(len(side.record.never) for side in sides)


def _patience(sides: Sequence[OneSided], sizes: Sequence[float]) -> int:
    """So many points without a new side are an accident no more; as many again for each further size."""
    for_fewest = ceil(_FOR_ONE / max(1, min(side.size for side in sides)))
    return max(_LEAST, for_fewest) * min(len(sizes), _MANY)


def _around(sizes: Sequence[float], number: int) -> float:
    """The middle of the sizes at a point: above and below what was compared, in turn."""
    size = sizes[number // 2 % len(sizes)]
    beside = size + (_BESIDE if number % 2 == 0 else -_BESIDE)
    return max(-_LARGEST, min(_LARGEST, beside))


def _sizes(sides: Sequence[OneSided]) -> list[float]:
    """What was compared, the most extreme first: what no ordinary point reaches, where there is any."""
    found = sorted({size for side in sides for size in side.sizes}, key=lambda s: (-abs(s), s)) or [0.0]
    return [size for size in found if abs(size) >= _BESIDE] or found


#: Arguments that are moved, and comparisons that are solved for, of each program; the first ones.
_LEAVES: Final = 4
_COMPARED: Final = 6
#: Numbers beside what is compared with a constant: just beside it, and halfway to the next ones.
_SOLVING_BESIDE: Final = 4


@dataclass(frozen=True, slots=True)
class Start:
    """An ordinary point to start from.

    Attributes:
        module: the program that says what arguments there are.
        options: of that point.
        arguments: words, one value per parameter of one device.
        numbers: of which some are wanted (`meeting_numbers`).
    """

    module: Module
    options: Options
    arguments: Sequence[Any]
    numbers: Numbers


def solved_points(
    at: Callable[[Options], Sequence[LeafResult]], watched: Sequence[Watched], start: Start
) -> Iterator[Meeting]:
    """Points at which what is compared is what it is wanted to be, for every question about ties.

    Args:
        at: evaluates both programs at a point.
        watched: both programs.
        start: where secants begin.
    """
    before = _asked(at, watched, start, start.arguments)
    others = with_simple_floats(start.module, start.arguments, start.options.seed + 1)
    for place in _places(start.module, start.arguments)[:_LEAVES]:
        moved = _with(start, place, _leaf(start, others, place))
        after = _asked(at, watched, start, moved)
        for one, other in zip(before, after):
            if one is None or other is None or one.value.shape != other.value.shape:
                continue
            for wanted in _wanted(one, start.numbers):
                ends = (_leaf(start, arguments, place) for arguments in (start.arguments, moved))
                x = _secant(one, other, wanted, *ends)
                if x is not None:
                    yield Meeting(0, words=_with(start, place, x))


def _asked(
    at: Callable[[Options], Sequence[LeafResult]],
    watched: Sequence[Watched],
    start: Start,
    words: Sequence[Any],
) -> list[Asked | None]:
    for program in watched:
        program.record(_COMPARED)
    at(replace(start.options, meeting=Meeting(0, words=words)))
    return [one for program in watched for one in program.recorded()]


def _wanted(asked: Asked, numbers: Numbers) -> list[Words]:
    """What is compared with, and numbers beside it, where it is one of the numbers."""
    first = asked.bound.reshape(-1)[:1]
    is_one = bool(first.size) and bool((asked.bound == first).all())
    found = np.flatnonzero(numbers.words == first) if is_one else np.zeros(0, np.intp)
    if not found.size:
        return [asked.bound]
    value = numbers.values[found[0]]
    order = np.argsort(np.abs(numbers.values - value), kind="stable")
    return [asked.bound, *(numbers.words[at].reshape(()) for at in order[1 : 1 + _SOLVING_BESIDE])]


def _secant(one: Asked, other: Asked, wanted: Words, x: Words, y: Words) -> Words | None:
    """The argument at which the value is what is wanted, on a line through x and y; None if it is fixed."""
    slope = w.subtract(other.value, one.value)
    missing = w.subtract(np.broadcast_to(wanted, one.value.shape), one.value)
    moves = slope != w.ZERO
    if not moves.any():
        return None
    share = np.where(moves, w.multiply(missing, w.inverse(np.where(moves, slope, w.ONE))), w.ZERO)
    if share.size == x.size:
        share = share.reshape(x.shape)
    else:
        share = np.broadcast_to(share[moves].reshape(-1)[0], x.shape)
    return np.asarray(w.add(x, w.multiply(share, w.subtract(y, x))))


def _places(module: Module, arguments: Sequence[Any]) -> list[tuple[int, int]]:
    """The arrays of real floats among the arguments: the parameter, and the number of the leaf."""
    return [
        (number, leaf)
        for number, (parameter, value) in enumerate(zip(module.entry.parameters, arguments))
        for leaf, (_, shape, _) in enumerate(flatten(parameter.shape, value))
        if isinstance(shape, ArrayShape) and shape.element_type.is_floating and shape.size
    ]


def _leaf(start: Start, arguments: Sequence[Any], place: tuple[int, int]) -> Words:
    number, leaf = place
    parameter = start.module.entry.parameters[number]
    return np.asarray([part for _, _, part in flatten(parameter.shape, arguments[number])][leaf])


def _with(start: Start, place: tuple[int, int], words: Words) -> list[Any]:
    """The arguments to start from with one array in place of another."""
    number, leaf = place
    shape = start.module.entry.parameters[number].shape
    parts = [part for _, _, part in flatten(shape, start.arguments[number])]
    parts[leaf] = words
    return [*start.arguments[:number], unflatten(shape, parts), *start.arguments[number + 1 :]]


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
