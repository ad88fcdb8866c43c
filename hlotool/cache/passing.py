"""Folders that last no longer than the process that made them, however it ends.

All lie in one folder of the process, which holds a lock on a file in it. The process removes the folder when
it ends; where it is killed, its parent does, or else the next process that makes one: a lock without a holder
is never that of a process that lives, whatever numbers and clocks say.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

_PREFIX = "hlotool-of-"
#: A folder without it is so new that nobody may touch it yet.
_LOCK = ".lock"

#: Folders of this process, with the descriptors that hold their locks until it ends.
_own: dict[Path, int | None] = {}


def passing_folder() -> Path:
    """A new folder of this process alone, which is removed when it ends."""
    return Path(tempfile.mkdtemp(dir=_folder_of(os.getpid())))


@contextmanager
def brief_folder() -> Iterator[Path]:
    """A new folder, which is removed at the end of the block."""
    with tempfile.TemporaryDirectory(dir=_folder_of(os.getpid()), ignore_cleanup_errors=True) as name:
        yield Path(name)


def remove_own() -> None:
    """Remove the folders of this process: at an end that calls nothing else."""
    for folder in _own:
        if folder.name.startswith(_name_of(os.getpid())):  # a fork has those of its parent, too
            shutil.rmtree(folder, ignore_errors=True)


def remove_left(pid: int | None = None) -> None:
    """Remove the folders that a process has left that was killed, or all such folders."""
    start = _PREFIX if pid is None else _name_of(pid)
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(start)]
        for folder in (Path(tempfile.gettempdir(), name) for name in names):
            descriptor = _locked(folder, waits=False)
            if descriptor is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


@lru_cache(maxsize=1)
def _folder_of(pid: int) -> Path:
    """The folder of this process; a fork makes one of its own."""
    remove_left()
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_name_of(pid)))
        (folder / _LOCK).touch(mode=0o600)
        descriptor = _locked(folder, waits=True)
        if folder.exists():
            break
        # Somebody who came between has taken it for one that was left.
    if not _own:
        atexit.register(remove_own)
    _own[folder] = descriptor
    return folder


def _name_of(pid: int) -> str:
    return f"{_PREFIX}{pid}-"


def _locked(folder: Path, waits: bool) -> int | None:
    """A descriptor that holds the lock of a folder; None where another process does, or locks are unknown."""
    try:
        import fcntl
    except ImportError:  # then only the process itself knows that it ends
        return None
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
