"""Local copies of objects, in the cache folder: each is downloaded once, whichever process asks first.

A copy is called by the hash of its URL and version, and is only used for that version, so it cannot be out
of date. The folder is bounded (`HLOTOOL_STORE_CACHE`); what was not used for longest goes first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hlotool.errors import DumpError, StoreError, UsageError
from hlotool.system.cache import cache_folder
from hlotool.system.files import digest
from hlotool.system.store_access import ask
from hlotool.system.store_objects import Stored, look

#: Bytes that copies may take, by default: some dumps of a training job.
_MOST = 8 << 30
#: Copies never take more than this share of what the disk has left.
_SHARE = 0.5
#: The folder is looked through again after this share of the bound was written to it.
_STEP = 0.02
#: A connection that gives less than this many bytes a second, on the average of a minute, hangs.
_SLOWEST, _SLOW_AFTER = 1024, 60.0


@contextmanager
def opened(url: str, version: str, limit: int) -> Iterator[IO[bytes]]:
    """The content of an object, open for reading.

    Args:
        url: of the object, masked.
        version: that is wanted, as a listing told it; empty for the present one.
        limit: bytes that it may have.

    Raises:
        StoreError: the store fails to answer, or has another version by now.
        DumpError: there is no such object, it may not be read, or it has more bytes.
    """
    copy = _kept(url, version) if version else None
    if copy is None:
        found = look(url)
        _check(found, version, limit)
        copy = _kept(url, version or found.version) or _fetched(found, version or found.version, limit)
    with copy:
        yield copy


def _check(found: Stored, version: str, limit: int) -> None:
    if found.is_folder:
        raise DumpError(f"{found.url}: a folder, not a file")
    if version and not found.is_still(version):
        raise StoreError(f"{found.url}: has changed since it was listed; start again")
    if found.size is not None and found.size > limit:
        raise DumpError(f"{found.url}: has {found.size} bytes; this is not read")


def _kept(url: str, version: str) -> IO[bytes] | None:
    """The copy of this version, if there is one; it counts as used."""
    path = _path(url, version)
    try:
        file = path.open("rb")
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return file


def _path(url: str, version: str) -> Path:
    return copies_folder() / digest(url, version)


def copies_folder() -> Path:
    """Where the copies are."""
    return cache_folder() / "copies"


def _fetched(found: Stored, version: str, limit: int) -> IO[bytes]:
    """The content, downloaded; kept as a copy where the cache can be written."""
    path = _path(found.url, version)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            # Another process may have been faster.
            return _kept(found.url, version) or _downloaded(found, version, limit, path)
    except OSError:
        return _passing_copy(found, version, limit)


def _downloaded(found: Stored, version: str, limit: int, path: Path) -> IO[bytes]:
    """Into a file beside `path`, which takes its name when it is whole."""
    handle, name = tempfile.mkstemp(".part", dir=path.parent)
    os.close(handle)
    try:
        _download(found, version, limit, name)
        file = open(name, "rb")  # noqa: SIM115 (the caller's)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _ROOM.taken(path, os.fstat(file.fileno()).st_size)
    return file


def _passing_copy(found: Stored, version: str, limit: int) -> IO[bytes]:
    """A file that goes when it is closed, for machines whose cache is full or cannot be written."""
    handle, name = tempfile.mkstemp()
    os.close(handle)
    try:
        _download(found, version, limit, name)
        return open(name, "rb")
    except OSError as error:
        raise DumpError(f"{found.url}: no room for a copy: {error.strerror or error}") from error
    finally:
        os.unlink(name)


def _download(found: Stored, version: str, limit: int, target: str) -> None:
    """Write the content to `target`; what arrives must be whole, and of the version that was asked for."""

    def fetch(files: Any, path: str) -> None:
        files.get_file(path, target, callback=_watch(found.url, limit))
        size = os.path.getsize(target)
        if found.size is not None and size != found.size:
            raise EOFError(f"{size} of {found.size} bytes arrived")

    ask(found.url, fetch)
    if not look(found.url).is_still(version):
        raise StoreError(f"{found.url}: has changed while it was read; start again")


def _watch(url: str, limit: int) -> Any:
    """What fsspec tells of the bytes that arrive."""
    from fsspec.callbacks import Callback

    class Watch(Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._progress = Progress(url, limit, time.monotonic())

        def relative_update(self, inc: int = 1) -> None:
            self._progress.add(inc, time.monotonic())

    return Watch()


class Progress:
    """Ends a download that is too long, or that hardly moves.

    Args:
        url: what is downloaded.
        limit: bytes that it may have.
        start: `time.monotonic()` when it began.
    """

    def __init__(self, url: str, limit: int, start: float) -> None:
        self._url = url
        self._limit = limit
        self._mark = start
        self._since_mark = self._total = 0

    def add(self, count: int, now: float) -> None:
        """`count` bytes more arrived; raises DumpError when this is to end."""
        self._total += count
        self._since_mark += count
        if self._total > self._limit:
            raise DumpError(f"{self._url}: has more than {self._limit} bytes; this is not read")
        if (elapsed := now - self._mark) > _SLOW_AFTER:
            if self._since_mark < _SLOWEST * elapsed:
                raise StoreError(f"{self._url}: {self._since_mark} bytes within {elapsed:.0f} s; given up")
            self._mark, self._since_mark = now, 0


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other processes from downloading the same; where files cannot be locked, nothing does."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(path.parent / f"lock-{path.name[:2]}", "ab") as lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class _Room:
    """Keeps the folder within its bound."""

    def __init__(self) -> None:
        self._unseen: float = float("inf")

    def taken(self, path: Path, size: int) -> None:
        """A copy of `size` bytes was added; the folder is looked through now and then."""
        most = copies_bound()
        self._unseen += size
        if self._unseen > _STEP * most:
            self._unseen = 0
            shrink(path.parent, most, path)


_ROOM = _Room()


def copies_bound() -> int:
    """Bytes that the copies may take; raises UsageError."""
    given = os.environ.get("HLOTOOL_STORE_CACHE")
    try:
        return _MOST if given is None else max(0, int(given))
    except ValueError as error:
        raise UsageError(f"HLOTOOL_STORE_CACHE={given}: write a number of bytes") from error


def shrink(folder: Path, most: int, newest: Path | None = None) -> None:
    """Delete what was not used for longest, until `most` bytes are left, and what died while it was written.

    Args:
        folder: of the copies.
        most: bytes; less where the disk is nearly full.
        newest: stays, whatever its size.
    """
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if not entry.name.startswith("lock-") and not _is_young_part(entry.name, status):
                    found.append((status.st_mtime, status.st_size, entry.path))
    room = min(most, int(_SHARE * (shutil.disk_usage(folder).free + sum(size for _, size, _ in found))))
    for _, size, path in sorted(found, reverse=True):
        room -= size
        if (room < 0 or path.endswith(".part")) and path != str(newest):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _is_young_part(name: str, status: os.stat_result) -> bool:
    """Whether somebody may still be writing it."""
    return name.endswith(".part") and time.time() - status.st_mtime < 3600
