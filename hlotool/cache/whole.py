"""Files that nobody reads half of."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from pathlib import Path

_numbers = itertools.count()


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file that threads, processes and hosts may read or write at the same time; its folder is made.

    It comes into being under a name of its own, with a `.` after that of `path`, and is then renamed.

    Raises:
        OSError: it cannot be written.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    passing = f"{path}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
    try:
        with open(passing, "wb") as file:
            file.write(content)
        os.replace(passing, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(passing)
        raise
