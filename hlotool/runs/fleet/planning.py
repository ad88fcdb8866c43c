"""A batch before and while it runs: by which executor, which tasks (a shard, a sample), how long yet.

What is left is told from the sizes of what is done and of what is left.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hlotool.runs.fleet.contents import Contents
from hlotool.runs.fleet.identity import identity_of
from hlotool.runs.task import Task
from hlotool.system.executor import Executor, Limits
from hlotool.system.files import digest
from hlotool.system.pool import Pool


def executor_of(
    cluster: str | None, limits: Limits, preload: Iterable[str] = (), backend: str = "worker"
) -> AbstractContextManager[Executor]:
    """The workers of a cluster where one is named, else processes of this machine; see `Pool`."""
    if cluster is None:
        return Pool(limits, preload, backend)
    from hlotool.runs.fleet.cluster import Cluster

    return Cluster(cluster, limits, preload, backend)


@dataclass(frozen=True, slots=True)
class Choice:
    """Tasks to run.

    Attributes:
        positions: among all tasks, rising.
        notes: what is left out, in words.
    """

    positions: list[int]
    notes: list[str]


def shard_of(tasks: Sequence[Task], number: int, count: int, contents: Contents | None = None) -> Choice:
    """The tasks of shard `number` of `count`, from 1: each task is in one, and the same programs together.

    It depends on the programs alone: all machines agree on it, whatever they call the files.

    Args:
        tasks: all of them.
        number: of the shard.
        count: of shards.
        contents: of the files of tasks.
    """
    chosen = [
        position
        for position, task in enumerate(tasks)
        if int(_program(task, contents)[:12], 16) % count == number - 1
    ]
    return Choice(chosen, [])


def sample_of(tasks: Sequence[Task], size: int, seed: int) -> Choice:
    """At most `size` tasks, spread over functions and, within one, over the sizes of programs.

    Args:
        tasks: all of them.
        size: how many are wanted.
        seed: decides which of those that are alike.
    """
    if size >= len(tasks):
        return Choice(list(range(len(tasks))), [])
    rng = random.Random(seed)
    functions: dict[str, list[int]] = defaultdict(list)
    for position, task in enumerate(tasks):
        functions[task.module.name].append(position)
    queues = []
    for name in sorted(functions):
        positions = sorted(functions[name], key=lambda position: (_size(tasks[position]), position))
        queues.append(_spread(positions, rng))
    rng.shuffle(queues)
    chosen: list[int] = []
    while len(chosen) < size:
        for queue in queues:
            if queue and len(chosen) < size:
                chosen.append(queue.pop())
    left = len(tasks) - size
    missed = len({task.module.name for task in tasks} - {tasks[position].module.name for position in chosen})
    functions_missed = f", among them {missed} functions as a whole" if missed else ""
    note = (
        f"a sample of {size} of {len(tasks)} modules (seed {seed}): nothing is said of the other {left}"
        f"{functions_missed}"
    )
    return Choice(sorted(chosen), [note])


def _spread(positions: list[int], rng: random.Random) -> list[int]:
    """Positions in an order of which every end has sizes from everywhere; `positions` are sorted by size."""
    ordered: list[int] = []
    pieces = [positions]
    while pieces:
        larger = []
        for piece in pieces:
            middle = rng.randrange(len(piece))
            ordered.append(piece[middle])
            larger += [part for part in (piece[:middle], piece[middle + 1 :]) if part]
        pieces = larger
    return ordered[::-1]


def _program(task: Task, contents: Contents | None) -> str:
    """What cannot be read is told by its name."""
    identity = identity_of(task, contents)
    return identity.program if identity.exact else digest(task.module.title)


def _size(task: Task) -> int:
    try:
        return os.stat(task.path).st_size
    except OSError:
        return 0


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
        self._all = sum(map(_remaining_size, tasks))
        self._done = 0
        self._end: float | None = None

    def finished(self, task: Task) -> None:
        """A task is over."""
        self._done += _remaining_size(task)
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


def _remaining_size(task: Task) -> int:
    """What a task weighs: bytes of its text, and something that every task takes."""
    try:
        return 1000 + os.stat(task.path).st_size
    except (OSError, ValueError):  # a member of an archive, a remote object
        return 10_000
