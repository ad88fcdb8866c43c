"""What failed in the last run of a command on the same paths, as `pytest --last-failed` knows it.

Like pytest, a run changes only what is known of the programs that it looked at, and where nothing is known to
have failed everything is looked at: what is left out is never the whole.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Sequence

from hlotool.runs.fleet.contents import absolute
from hlotool.runs.fleet.known import Choice
from hlotool.system.cache import failure_store
from hlotool.system.files import digest
from hlotool.system.urls import is_url

#: A program by the folder of its files and by its name there; every stage of it has the same.
Place = tuple[str, str]

#: Stands for a failure of several programs together.
TOGETHER: Place = ("", "")


def place_of(file: str, title: str) -> Place:
    """The place of a program.

    Args:
        file: one of its files, as reports name it.
        title: of its module.
    """
    return os.path.dirname(file if is_url(file) else os.path.abspath(file)), os.path.basename(title)


class LastRun:
    """The programs that failed in the last run.

    Args:
        command: its name.
        paths: that it was given, in whatever order.
    """

    def __init__(self, command: str, paths: Iterable[str]) -> None:
        self._store = failure_store()
        self._key = digest(command, *sorted(map(absolute, paths)))
        kept = self._store.get(self._key)
        self._failed: set[Place] = {(folder, name) for folder, name in kept or ()}

    def choice(self, places: Sequence[Place]) -> Choice:
        """The positions of those that failed; of all, where none did or some did together."""
        positions = [n for n, place in enumerate(places) if place in self._failed]
        if not positions or TOGETHER in self._failed:
            why = "some failed together" if TOGETHER in self._failed else "none is known to have failed"
            return Choice(list(range(len(places))), [f"all modules: in the last run of these paths {why}"])
        note = f"{len(positions)} of {len(places)} modules failed in the last run of these paths"
        return Choice(positions, [f"{note}: the others were not looked at"])

    def keep(self, looked_at: Container[Place], failed: Iterable[Place]) -> None:
        """A run has ended: what it did not look at stays known."""
        left = {place for place in self._failed if place not in looked_at}
        now = left | set(failed)
        if now != self._failed:
            self._store.put(self._key, sorted(now))
