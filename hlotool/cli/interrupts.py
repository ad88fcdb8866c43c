"""Ctrl-C: the first ends the command in order, a nervous second changes nothing, a later one ends it at once.

So do SIGTERM, with which schedulers and service managers end what runs for too long, and SIGHUP, which comes
when a terminal or a connection is gone, unless they are ignored (`nohup`).

Python raises KeyboardInterrupt wherever it is just then: within an import that turns it into an ImportError,
in a callback that swallows it, in the middle of cleaning up after the last one. Nothing is imported here that
takes time, for the handler must be there before anything that does.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from types import FrameType
from typing import Any

#: Seconds in which another Ctrl-C belongs to the first.
_NERVOUS = 1.0
#: `ExitCode.INTERRUPTED`, which is not imported yet.
INTERRUPTED = 130

#: With what they do unless somebody says otherwise.
_SIGNALS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
if hasattr(signal, "SIGHUP"):
    _SIGNALS[signal.SIGHUP] = signal.SIG_DFL

_first: float | None = None
_watched: list[int] = []


def watch() -> None:
    """Handle the signals from now on, those that whoever started this process said nothing else of."""
    for number, usual in _SIGNALS.items():
        if signal.getsignal(number) is usual:
            try:
                signal.signal(number, _interrupt)
            except ValueError:  # not the main thread: it is for others to handle
                return
            _watched.append(number)
    sys.unraisablehook = _unraisable


def end() -> None:
    """Nothing is left that a signal could end: while Python itself ends, it would kill the process."""
    if _first is not None:
        for number in _watched:
            signal.signal(number, signal.SIG_IGN)


def was_interrupted() -> bool:
    """Whether the user has asked this command to end."""
    return _first is not None


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    global _first
    now = time.monotonic()
    if _first is None:
        _first = now
        raise KeyboardInterrupt
    if now - _first > _NERVOUS:
        # Answers are on the disk as soon as they are known, and workers end when their parent is gone.
        os._exit(INTERRUPTED)


def _unraisable(lost: Any) -> None:
    """Raise an interrupt again that came where nothing can be raised."""
    global _first
    if lost.exc_type is not None and issubclass(lost.exc_type, KeyboardInterrupt):
        _first = None
        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(lost)
