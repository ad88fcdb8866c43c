"""Writing to stdout when its reader may go away."""

from __future__ import annotations

import os
import sys


def emit(text: str) -> None:
    """Write `text` to stdout. A reader that has seen enough (`| head`) is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()


def emit_bytes(content: bytes) -> None:
    """Write UTF-8 text as `emit` does, whatever the encoding of stdout."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        emit(content.decode())
        return
    try:
        sys.stdout.flush()
        buffer.write(content)
        buffer.flush()
    except BrokenPipeError:
        _abandon_stdout()


def _abandon_stdout() -> None:
    """Let what is still buffered vanish; Python would complain once more when it flushes at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
