"""How long a batch will take: from the sizes of what is done and of what is left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from hlotool.replay.task import Task


class Remaining:
    """An estimate that never grows: who plans by it is not told later that it takes longer.

    A module takes as long as its text is long, as far as is known before it runs. Until a tenth of the text
    is done, or half a minute has passed, nothing is said.

    Args:
        tasks: of the batch.
        clock: seconds, from any origin.
    """

    _EARLY_SHARE = 0.1
    _EARLY_SECONDS = 30.0

    def __init__(self, tasks: Sequence[Task], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._all = sum(map(_size, tasks))
        self._done = 0
        self._end: float | None = None

    def finished(self, task: Task) -> None:
        """A task is over."""
        self._done += _size(task)
        now = self._clock()
        share = self._done / self._all
        if share < self._EARLY_SHARE and now - self._began < self._EARLY_SECONDS:
            return
        end = now + (now - self._began) * (1 - share) / share
        self._end = end if self._end is None else min(self._end, end)

    @property
    def seconds(self) -> float | None:
        """Seconds that are left; None as long as nothing can be said."""
        return None if self._end is None else max(0.0, self._end - self._clock())


def _size(task: Task) -> int:
    """What a task weighs: bytes of its text, and something that every task takes."""
    try:
        return 1000 + os.stat(task.path).st_size
    except (OSError, ValueError):  # a member of an archive, a remote object
        return 10_000
