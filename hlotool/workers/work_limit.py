"""Work, counted: what is done by so much of it is the same on every machine, under any load.

Whoever does something that takes time says how much it is (`spend`), before it does it and by nothing but
what is asked: sizes, counts, opcodes; never by a clock, nor by what a cache happens to hold. A limit then
cuts at the same place in every run, where a time limit cuts wherever the machine has got to.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
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


# A time limit within a process, for what may never end and is not worth a process of its own.

#: A limit that no timer can hold is as good as this.
_LONGEST = 1e8
#: Seconds after which it is raised again: where nothing can be raised, as in a callback of the garbage
#: collector, Python drops it.
_AGAIN = 1.0


class TooSlow(BaseException):
    """The time is over; no `except Exception` on the way takes it for a failure of its own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow when the block takes longer.

    Only the main thread of a process on POSIX can be interrupted: elsewhere there is no limit.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 1e-3), _LONGEST), _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
