"""Files: keys of their contents, folders that vanish with their process, atomic writes.

Keys are equal for equal bytes, whatever the files are called and whenever they were written. A file is read
once per process as long as it is unchanged. Between processes these keys rely on nothing but the bytes, for
a time of change can be set at will and a checkout sets it anew; code that relies on more (fleets trust the
stamps of large directories, by git's rule) says so there.

Temporary folders last no longer than the process that made them, however it ends. All lie in one folder of
the process, which holds a lock on a file in it. The process removes the folder when it ends; where it is
killed, its parent does, or else the next process that makes one: a lock without a holder never belongs to a
process that lives, whatever numbers and clocks say.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import itertools
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

_SIZE = 20
_CHUNK = 1 << 20


def digest(*parts: str | bytes) -> str:
    """A key for `parts`; their boundaries count."""
    whole = hashlib.blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "little"))
        whole.update(data)
    return whole.hexdigest()


def processor_features() -> str:
    """What the processor can do, on which libraries choose their code; its name where the system hides it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    told = (line for line in lines if line.startswith(("flags", "Features")))
    return next(told, "") or platform.processor()


def stamp_of(status: os.stat_result) -> tuple[int, ...]:
    """What a file shows of a change while one process watches it."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def path_fingerprint(path: Path) -> str:
    """A key for the content of a file, or of all files below a folder with their relative names.

    What is missing or cannot be read has a key of its own, for that decides about an answer, too.
    """
    if not path.is_dir():
        return _file_fingerprint(path)
    files = sorted(file for file in path.rglob("*") if not file.is_dir())
    return digest(
        *(part for file in files for part in (str(file.relative_to(path)), _file_fingerprint(file)))
    )


def _file_fingerprint(path: Path) -> str:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return "no file"  # to open a pipe is to wait for who writes into it
        return _content(path, stamp_of(status))
    except OSError as error:
        return f"errno {error.errno}"


@lru_cache(maxsize=4096)
def _content(path: Path, _: tuple[int, ...]) -> str:
    whole = hashlib.blake2b(digest_size=_SIZE)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
    return whole.hexdigest()


_PREFIX = "hlotool-of-"
#: A folder without it is so new that it must not be touched yet.
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
    return f"{platform.node()}.{os.getpid()}.{next(_numbers)}"
