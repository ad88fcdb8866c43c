"""The command's process: its address space, Ctrl-C and other signals, streams of narrow encodings."""

from __future__ import annotations

import _thread
import codecs
import os
import signal
import sys
import time
from types import FrameType
from typing import Any

#: Less than this, and NumPy cannot be imported and used: measured with NumPy 2.4 on Linux, one thread.
LEAST = 290 << 20
#: Enough for as many threads as OpenBLAS takes by itself: it reserves 32 MiB for each of 64 at most.
_ROOM = 4 << 30


def lack_of_address_space() -> str:
    """Why nothing can be done in this process, in one line; empty where there is room enough.

    Where there is little of it, OpenBLAS gets one thread, unless the user says how many.
    """
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError, ValueError):
        return ""
    if limit == resource.RLIM_INFINITY or limit >= _ROOM:
        return ""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if limit >= LEAST:
        return ""
    return (
        f"out of memory: the address space of this process is limited to {limit >> 20} MiB (ulimit -v), and"
        f" NumPy alone needs {LEAST >> 20} MiB; a limit for the programs that are run is --memory-limit"
    )


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
    """Handle the signals from now on, except those whose handling the parent process has changed."""
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


#: What reports are drawn with, for encodings that lack it; marks of verdicts stay apart from each other.
_PLAIN = {
    **{"✓": "+", "✗": "x", "≠": "#", "·": ".", "×": "x", "…": "...", "–": "-", "−": "-", "→": "->"},
    **{
        "≤": "<=",
        "≥": ">=",
        "±": "+-",
        "÷": "/",
        "√": "sqrt",
        "█": "#",
        "│": "|",
        "░": ".",
        "▒": ":",
        "▓": "%",
    },
}


def open_closed() -> None:
    """Put the null device in the place of standard streams that are closed."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, open(_null(number), mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _null(number: int) -> int:
    """The null device under `number`, or under another one where something else has that by now."""
    opened = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(opened, True)
    try:
        os.fstat(number)
    except OSError:
        os.dup2(opened, number)
        os.close(opened)
        return number
    return opened


def tolerate_narrow_encodings() -> None:
    """A terminal that cannot show a character gets one like it or a question mark, not a traceback."""
    codecs.register_error("hlotool.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="hlotool.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """See `codecs.register_error`."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(_PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end
