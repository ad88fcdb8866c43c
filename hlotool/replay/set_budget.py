"""How long further sets of inputs may take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from hlotool.directed.sets import InputSet
from hlotool.replay.options import ReplayOptions, RunOptions, budget_seconds

#: Of the time limit per module: what further sets may take. The judge has its share before them.
_SHARE: Final = 0.3
#: Of what the module took without them: a run takes less than twice as long with them, looking at what they
#: exercise included.
_FACTOR: Final = 0.5
#: Seconds that they may take in any case. Small modules are read and run in some milliseconds, in which no
#: set is made; the command itself takes longer to start than all of theirs together.
_LEAST: Final = 0.025


def seconds_for_sets(options: ReplayOptions, spent: float, programs: int = 1) -> float:
    """What further sets of a module may take.

    Args:
        options: of the user.
        spent: seconds that the module took without them.
        programs: that share the time limit of the module.
    """
    limit = options.timeout if isinstance(options, RunOptions) else float("inf")
    most = _SHARE * limit / programs
    if options.thorough:
        return most
    if options.budget is not None:
        return min(most, budget_seconds(options.budget, spent))
    return min(most, max(_FACTOR * spent, _LEAST / programs))


def in_time(sets: Iterable[InputSet], seconds: float) -> Iterator[tuple[InputSet, bool]]:
    """Sets, and whether a replay would have come to each of them.

    Whoever asks for the sets runs one program on each; a replay runs two. Other processes do not count:
    time is that of the processor.

    Args:
        sets: made when they are asked for.
        seconds: that they may take.
    """
    took = 0.0
    began = time.process_time()
    for one in sets:
        took += time.process_time() - began
        began = time.process_time()
        yield one, took <= seconds
        took += 2 * (time.process_time() - began)
        began = time.process_time()
