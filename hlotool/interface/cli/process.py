"""The command's process: memory, signals, streams; notes, errors and exit codes."""

from __future__ import annotations

import _thread
import atexit
import codecs
import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from hlotool.errors import ExitCode

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hlotool.system.records import ErrorRecord


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


#: New objects before the collector looks for garbage; 700 by default, or 2000.
_RARELY = 20_000


def collect_rarely() -> None:
    """Let the garbage collector take less of this process: what a command makes is mostly kept to its end.

    Nor does it look through all of that once more when Python ends.
    """
    gc.set_threshold(_RARELY)
    atexit.register(gc.freeze)


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


def emit_json(record: object) -> None:
    """Write a record as one line of JSON."""
    from hlotool.system.records import json_of

    emit_bytes((json_of(record), b"\n"))


def emit_report(report: RenderableType) -> None:
    """Write a report, with colours where stdout is a terminal."""
    from hlotool.interface.report.console import console_for, render

    with _stdout():
        emit(render(console_for(sys.stdout), report))


def emit_error(error: ErrorRecord) -> None:
    """Say on stderr what ended a command: one line, and the offending text with a caret or a log below it."""
    tell("\n".join([f"hlotool: error: {error.message}", *error.log.splitlines()]))


def tell(text: str) -> None:
    """Write a line to stderr; what it quotes of a file cannot command the terminal."""
    from hlotool.interface.report.console import printable

    with contextlib.suppress(OSError):  # stderr is closed: there is nowhere to report that
        print(printable(text), file=sys.stderr)


def emit(text: str) -> None:
    """Write `text` to stdout; raises UsageError when it takes no more.

    A reader that has seen enough (`| head`) is no error.
    """
    with _stdout():
        sys.stdout.write(text)
        sys.stdout.flush()


def emit_bytes(content: Iterable[bytes]) -> None:
    """Write UTF-8 text, in pieces, as `emit` does, whatever the encoding of stdout."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        emit(b"".join(content).decode())
        return
    with _stdout():
        sys.stdout.flush()
        buffer.writelines(content)
        buffer.flush()


@contextmanager
def _stdout() -> Iterator[None]:
    from hlotool.system.paths import writing

    try:
        yield
    except BrokenPipeError:
        _abandon_stdout()
    except OSError:
        _abandon_stdout()
        with writing("standard output"):
            raise


def _abandon_stdout() -> None:
    """Let what is still buffered vanish; Python would complain once more when it flushes at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


#: What `--help` says about the exit status.
EXIT_CODES = {
    ExitCode.AGREE: "everything that was compared agrees",
    ExitCode.MISMATCH: "a mismatch, or a finding",
    ExitCode.USAGE: "wrong usage, or input that cannot be used",
    ExitCode.NOTHING_COMPARED: "nothing was compared: unsupported, or nothing to compare with",
    ExitCode.BACKEND_FAILED: "a backend crashed, timed out or ran out of memory; a compilation did not end",
    ExitCode.INCONCLUSIVE: "flaky or inconclusive",
    ExitCode.INTERRUPTED: "interrupted",
}


def exit_code_text() -> str:
    """The exit codes as a block for `--help`."""
    rows = [f"  {code.value:<4} {meaning}" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["exit codes:", *rows])
