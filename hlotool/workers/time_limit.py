"""A time limit within a process, for what may never end and is not worth a process of its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

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
