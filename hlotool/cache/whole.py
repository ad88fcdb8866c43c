"""Files that nobody reads half of."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import socket
import stat
from collections.abc import Iterable
from pathlib import Path

_numbers = itertools.count()

#: Why a file could not be replaced that can perhaps be written: a folder that only others write to, a file
#: that is mounted, a name that is as long as can be.
_IN_PLACE = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV, errno.ENAMETOOLONG))


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file that threads, processes and hosts may read or write at the same time; its folder is made.

    It comes into being under a name of its own, with a `.` after that of `path`, and is then renamed.

    Raises:
        OSError: it cannot be written.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _replace(str(path), f"{path}.{_passing_name()}", [content])


def write_over(path: str | Path, pieces: Iterable[bytes]) -> None:
    """Write a file of the user, whose folder is there: what was in it stays until all of this is written.

    Links are followed, and permissions stay. What is no regular file, belongs to somebody else or has another
    name, too, is written where it is; and so is what cannot be replaced.

    Raises:
        OSError: it cannot be written.
    """
    target = os.path.realpath(path)
    content = list(pieces)
    if _can_be_replaced(target):
        folder, name = os.path.split(target)
        try:
            _replace(target, os.path.join(folder, f".{name}.{_passing_name()}"), content)
        except OSError as error:
            if error.errno not in _IN_PLACE:
                raise
        else:
            return
    with open(target, "wb") as file:
        file.writelines(content)


def _can_be_replaced(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return True
    is_ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and is_ours and os.access(path, os.W_OK)


def _replace(path: str, passing: str, content: Iterable[bytes]) -> None:
    try:
        with open(passing, "xb") as file:
            file.writelines(content)
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(path, passing)
        os.replace(passing, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(passing)
        raise


def _passing_name() -> str:
    """Of one process on one host, once."""
    return f"{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
