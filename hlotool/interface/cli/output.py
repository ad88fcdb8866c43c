"""What a command prints: notes and errors to stderr, the report to stdout; what exit codes mean."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hlotool.system.records import ErrorRecord


def emit_json(record: object) -> None:
    """Write a record as one line of JSON."""
    from hlotool.system.surrogates import json_of

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
