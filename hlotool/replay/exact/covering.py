"""Further points for two programs that are equal so far, on the other sides of decisions that went one way.

What a decision compares shows where its other side lies: a constant of 1e30 is reached by numbers of about
that size. So at each further point the numbers that a field has no sizes for lie just above, or just below,
what was compared (`Kappa`), and the arguments are new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from typing import Final

from hlotool.errors import BackendFailed, HlotoolError
from hlotool.replay.exact.arguments import Meeting, Options
from hlotool.replay.exact.result import LeafResult, Relation
from hlotool.replay.exact.sides import OneSided, Watched
from hlotool.workers.work_limit import TooMuchWork

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
