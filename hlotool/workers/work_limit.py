"""Work, counted: what is done by so much of it is the same on every machine, under any load.

Whoever does something that takes time says how much it is (`spend`), before it does it and by nothing but
what is asked: sizes, counts, opcodes; never by a clock, nor by what a cache happens to hold. A limit then
cuts at the same place in every run, where a time limit cuts wherever the machine has got to.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Units of work that a core of 2020 does in a second: one is about a nanosecond.
UNITS_PER_SECOND: Final = 1_000_000_000

_NEVER: Final = float("inf")


class TooMuchWork(BaseException):
    """More work than was allowed; no `except Exception` on the way takes it for a failure of its own."""


class _Count:
    """The work of this process, of all its threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.done = 0
        self.end = _NEVER


_count = _Count()


def work_done() -> int:
    """Units of work that this process has done; differences tell something, the number itself does not."""
    return _count.done


def spend(units: int) -> None:
    """Count work that is about to be done.

    Raises:
        TooMuchWork: it is more than the limit allows.
    """
    # Devices of a program are threads. Sums of integers do not depend on the order.
    with _count.lock:
        _count.done += units
    if _count.done > _count.end:
        raise TooMuchWork


def in_words(units: int) -> str:
    """How long so much work takes on a usual machine, as `takes about 12 s`."""
    return f"takes about {units / UNITS_PER_SECOND:.0f} s"


@contextmanager
def work_limit(units: float) -> Iterator[None]:
    """Raise TooMuchWork when the block does more.

    Args:
        units: that the block may spend; an enclosing limit holds as well.
    """
    previous = _count.end
    _count.end = min(previous, _count.done + units)
    try:
        yield
    finally:
        _count.end = previous
