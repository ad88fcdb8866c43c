"""`-` as a path: what comes in on standard input, kept as a file for the worker processes."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import lru_cache
from typing import IO, Any

from hlotool.dump.compression import Limits, copy_bounded
from hlotool.dump.source import Source

#: What it is called on the command line, and in messages.
PATH, SHOWN = "-", "<stdin>"


def stdin_source(limits: Limits) -> Source:
    """Standard input as something to read, as often as it is asked for.

    Raises:
        DumpError: it holds more than `limits.file_bytes`.
    """
    return Source(_spooled(sys.stdin, limits), shown=SHOWN)


@lru_cache(maxsize=1)
def _spooled(stream: Any, limits: Limits) -> str:
    """The path of a file with all of `stream`, which can be read only once; removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="hlotool-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "stdin")
    raw: IO[bytes] = getattr(stream, "buffer", stream)
    with open(path, "wb") as copy:
        copy_bounded(raw, copy, limits.file_bytes, SHOWN)
    return path
