"""The steps of a search: each is asked for by key, computed once, kept in the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from hlotool.cache.journal import Journal

#: Computes the values of several steps at once: pairs of position and value, in any order.
Evaluate = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


class Listener(Protocol):
    """Is told how a search goes on."""

    def step(self, text: str, verdict: str, seconds: float, again: bool) -> None:
        """A step is done: what it was about, what came out; `again` when it was taken from the journal."""

    def phase(self, text: str, steps: int | None = None) -> None:
        """A new part of the search begins; `steps` is an estimate of its length."""


class Silent:
    """A listener that does not care."""

    def step(self, text: str, verdict: str, seconds: float, again: bool) -> None:
        """See `Listener`."""

    def phase(self, text: str, steps: int | None = None) -> None:
        """See `Listener`."""


class Steps:
    """Remembers what was asked.

    Values are plain data: what JSON can hold.

    Args:
        journal: keeps the answers; None for the memory of this process only.
        listener: is told about each step.

    Attributes:
        computed: steps that were computed in this process.
        recalled: steps that the journal knew.
        listener: see above.
    """

    def __init__(self, journal: Journal | None = None, listener: Listener | None = None) -> None:
        self.listener: Listener = listener or Silent()
        self.computed = 0
        self.recalled = 0
        self._journal = journal
        self._known: dict[str, Any] = journal.read() if journal else {}
        self._old = set(self._known)
        self._seconds: dict[str, float] = {}

    @property
    def problem(self) -> str:
        """Why answers are no longer kept; empty as long as they are."""
        return self._journal.problem if self._journal else ""

    def ask(
        self,
        key: str,
        text: str,
        compute: Callable[[], Any],
        show: Callable[[Any], str] = str,
        lasts: Callable[[Any], bool] = lambda value: True,
    ) -> Any:
        """The value of one step.

        Args:
            key: everything that the value depends on.
            text: what the step is about, for the listener.
            compute: called unless the value is known.
            show: the value in a few words.
            lasts: whether another run of the command should believe it, too.
        """
        start = time.perf_counter()
        if not self._recall(key):
            value = compute()
            self._keep(key, value, lasts(value))
            self.computed += 1
        value = self._known[key]
        took = self._seconds.pop(key, time.perf_counter() - start)
        self.listener.step(text, show(value), took, key in self._old)
        self._old.discard(key)
        return value

    def keep(self, key: str, value: Any, seconds: float, lasts: bool = True) -> None:
        """Remember a step that took `seconds` elsewhere; `ask` then tells the listener."""
        self._keep(key, value, lasts)
        self._seconds[key] = seconds
        self.computed += 1

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Those of `keys` whose values are not known."""
        return [key for key in dict.fromkeys(keys) if key not in self._known]

    def _recall(self, key: str) -> bool:
        if key in self._old:
            self.recalled += 1
        return key in self._known

    def _keep(self, key: str, value: Any, lasts: bool) -> None:
        self._known[key] = value
        if lasts and self._journal is not None:
            self._journal.add(key, value)
