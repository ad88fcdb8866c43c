"""Which tasks of a batch are run here: those of one shard, or a sample of all."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hlotool.cache.fingerprint import digest
from hlotool.fleet.contents import Contents
from hlotool.fleet.identity import identity_of
from hlotool.replay.task import Task


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
