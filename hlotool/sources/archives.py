"""Reading files and members of archives, wherever they lie.

A member of an archive is read into memory, never unpacked under its own name, so a name such as `../../x`
can do no harm. A compressed tar has no random access: it is expanded once per process into an anonymous
temporary file.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import shutil
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from msgspec import Struct

from hlotool.errors import DumpError
from hlotool.sources.open_files import (
    DAMAGE,
    File,
    Limits,
    copy_bounded,
    expanded,
    is_compressed,
    open_file,
    read_bounded,
    read_some,
    stamp,
)
from hlotool.system.urls import name_of
from hlotool.system.user_input import size_text

_logger = logging.getLogger(__name__)

_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_ZIP_MAGIC, _TAR_MAGIC_AT = b"PK\x03\x04", 257
#: Up to this size an expanded tar stays in memory.
_SPOOL_BYTES = 64 << 20


def is_archive(path: str) -> bool:
    """Whether the name says that `path`, of this machine or a URL, is an archive that can be read."""
    return name_of(path).lower().endswith((".zip", *_TAR_SUFFIXES))


def is_archive_inside(file: File, limits: Limits) -> bool:
    """Whether `file` is an archive, whatever its name; raises DumpError when it is damaged."""
    head = read_head(file, "", tarfile.BLOCKSIZE, limits)
    return head.startswith(_ZIP_MAGIC) or head[_TAR_MAGIC_AT:].startswith(b"ustar")


def read(file: File, member: str, limits: Limits) -> bytes:
    """The decompressed content of `file`, or of `member` of the archive `file`; raises DumpError."""
    name = _name(file, member)
    _logger.debug("read %s", name)
    with _opened(file, member, limits) as raw:
        # Bounded by the size of the archive for its members.
        size = None if file.is_remote and member else _size_on_disk(file, raw)
        return read_bounded(expanded(raw, name), limits, name, size)


def read_head(file: File, member: str, size: int, limits: Limits) -> bytes:
    """The first `size` bytes of what `read` returns."""
    name = _name(file, member)
    with _opened(file, member, limits) as raw:
        return read_some(expanded(raw, name), size, name)


def _name(file: File, member: str) -> str:
    return f"{file}!{member}" if member else str(file)


def _size_on_disk(file: File, raw: IO[bytes]) -> int:
    """Bytes of a file, or of the local copy of a remote one."""
    return os.fstat(raw.fileno()).st_size if file.is_remote else os.path.getsize(file.path)


@contextmanager
def _opened(file: File, member: str, limits: Limits) -> Iterator[IO[bytes]]:
    if not member:
        with open_file(file, limits) as raw:
            yield raw
        return
    with _LOCK, _archive(file, limits).open(member) as raw:
        yield raw


def list_archive(file: File, limits: Limits) -> tuple[list[str], list[str]]:
    """Names of the regular files of an archive, and of what was passed over; raises DumpError."""
    with _LOCK:
        archive = _archive(file, limits)
        return archive.names, archive.skipped


_LOCK = threading.RLock()


class _Slot(Struct):
    """The archive that was read last; reading a dump means many members of one archive."""

    key: tuple[Any, ...] = ()
    archive: _Tar | _Zip | None = None

    def put(self, key: tuple[Any, ...], archive: _Tar | _Zip) -> None:
        self.clear()
        self.key, self.archive = key, archive

    def clear(self) -> None:
        if self.archive is not None:
            self.archive.close()
        self.key, self.archive = (), None


_SLOT = _Slot()
atexit.register(_SLOT.clear)


def _archive(file: File, limits: Limits) -> _Tar | _Zip:
    key = (file, limits, *stamp(file))
    if _SLOT.archive is None or _SLOT.key != key:
        _SLOT.put(key, _open_archive(file, limits))
    assert _SLOT.archive is not None
    return _SLOT.archive


def _open_archive(file: File, limits: Limits) -> _Tar | _Zip:
    raw, path = _seekable(file, limits), file.path
    try:
        is_zip = name_of(path).lower().endswith(".zip") or raw.read(4) == _ZIP_MAGIC
        raw.seek(0)
        return _Zip(path, raw, limits) if is_zip else _Tar(path, raw, limits)
    except BaseException:
        raw.close()
        raise


def _seekable(file: File, limits: Limits) -> IO[bytes]:
    """The archive as a seekable file, a compressed tar expanded."""
    with open_file(file, limits) as raw:
        if not is_compressed(raw.read(8)):
            own = os.fdopen(os.dup(raw.fileno()), "rb")
            own.seek(0)
            return own
        raw.seek(0)
        copy: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 (the caller's)
        try:
            room = shutil.disk_usage(tempfile.gettempdir()).free // 2
            copy_bounded(expanded(raw, str(file)), copy, min(limits.archive_bytes, room), str(file))
        except BaseException:
            copy.close()
            raise
    copy.seek(0)
    return copy


def _is_safe(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/") and "\0" not in name


def _too_many(path: str, limits: Limits) -> DumpError:
    return DumpError(f"{path}: more than {limits.members} entries; this is not read")


class _Tar:
    """A tar whose members are found by position, so that they can be read in any order.

    Attributes:
        names: of its regular files, in the order of the archive.
        skipped: what it holds besides: links, devices, unsafe names.
    """

    def __init__(self, path: str, raw: IO[bytes], limits: Limits) -> None:
        self._path = path
        self._raw = raw
        self._limits = limits
        self._extents: dict[str, tuple[int, int]] = {}
        self.skipped: list[str] = []
        try:
            self._index()
        except (tarfile.TarError, *DAMAGE) as error:
            raise DumpError(f"{path}: not a readable tar archive: {error}") from error
        self.names = list(self._extents)

    def _index(self) -> None:
        with tarfile.open(fileobj=self._raw, mode="r:") as tar:
            for count, info in enumerate(tar):
                if count >= self._limits.members:
                    raise _too_many(self._path, self._limits)
                name = info.name.removeprefix("./")
                if info.isreg() and _is_safe(name) and not info.issparse():
                    self._extents[name] = (info.offset_data, info.size)
                elif not info.isdir():
                    self.skipped.append(name)

    def open(self, member: str) -> IO[bytes]:
        if member not in self._extents:
            raise DumpError(f"{self._path}: no member {member}")
        offset, size = self._extents[member]
        name = f"{self._path}!{member}"
        if size > self._limits.file_bytes:
            raise DumpError(f"{name}: has {size_text(size)}; this is not read")
        self._raw.seek(offset)
        content = read_some(self._raw, size, name)
        if len(content) < size:
            raise DumpError(f"{name}: damaged: the archive ends within it")
        return io.BytesIO(content)

    def close(self) -> None:
        self._raw.close()


#: What the standard library raises on a damaged zip besides: names, versions and places that cannot be.
_ZIP_DAMAGE = (KeyError, RuntimeError, NotImplementedError, ValueError, *DAMAGE)


class _Zip:
    """A zip archive; `names` and `skipped` as of a tar."""

    def __init__(self, path: str, raw: IO[bytes], limits: Limits) -> None:
        self._path = path
        self._raw = raw
        try:
            self._zip = zipfile.ZipFile(raw)
        except _ZIP_DAMAGE as error:
            raise DumpError(f"{path}: not a readable zip archive: {error}") from error
        files = [name for name in self._zip.namelist() if name and not name.endswith("/")]
        if len(files) > limits.members:
            raise _too_many(path, limits)
        self.names = [name for name in files if _is_safe(name)]
        self.skipped = [name for name in files if not _is_safe(name)]

    def open(self, member: str) -> IO[bytes]:
        try:
            return self._zip.open(member)
        except _ZIP_DAMAGE as error:
            raise DumpError(f"{self._path}!{member}: cannot be read: {error}") from error

    def close(self) -> None:
        self._zip.close()
        self._raw.close()
