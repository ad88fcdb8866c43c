"""A file, of this machine or of a store: opened, decompressed with an upper bound, and known again."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol, TypeAlias

from msgspec import Struct

from hlotool.errors import DumpError
from hlotool.system.files import stamp_of
from hlotool.system.urls import is_url
from hlotool.system.user_input import size_text


class Limits(Struct, frozen=True):
    """Bounds that keep a damaged or hostile file from filling memory or disk.

    Attributes:
        file_bytes: of one decompressed file; a proto cannot exceed 2 GiB anyway.
        archive_bytes: of a decompressed tar archive.
        members: entries of an archive.
    """

    file_bytes: int = 2 << 30
    archive_bytes: int = 16 << 30
    members: int = 500_000


DEFAULT_LIMITS = Limits()

#: Text of HLO shrinks to a twentieth, long rows of equal numbers to a hundredth, a bomb to a thousandth.
MOST_EXPANSION = 100
#: What every machine has room for, however small the file was.
_SMALL = 256 << 20


class Reader(Protocol):
    """What can be read from front to back."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, empty at the end."""


#: First bytes of each compressed format. None of them can begin HLO text or a proto of XLA.
_OPENERS: dict[bytes, Callable[[Any], Reader]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
#: How often a file may be compressed: a log that was compressed by its program, and again by who sent it.
_LAYERS = 3
_LONGEST_MAGIC = max(map(len, _OPENERS))

#: What the standard library raises on a damaged file.
DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error, zipfile.BadZipFile)
_CHUNK = 1 << 20


class _Prefixed:
    """A stream with the bytes that were already taken from it put back."""

    def __init__(self, start: bytes, raw: Reader) -> None:
        self._start = start
        self._raw = raw

    def read(self, size: int = -1, /) -> bytes:
        if not self._start:
            return self._raw.read(size)
        size = len(self._start) if size < 0 else size
        taken, self._start = self._start[:size], self._start[size:]
        return taken


def is_compressed(start: bytes) -> bool:
    """Whether a file that begins with `start` is gzip, bzip2 or xz."""
    return start.startswith(tuple(_OPENERS))


def expanded(raw: Reader, name: str) -> Reader:
    """A stream of the decompressed content of `raw`, or of its content when it is not compressed.

    Raises:
        DumpError: not even its first bytes can be read; `name` is what the message calls it.
    """
    stream = raw
    for _ in range(_LAYERS):
        start = read_some(stream, _LONGEST_MAGIC, name)
        stream = _Prefixed(start, stream)
        opener = next((o for magic, o in _OPENERS.items() if start.startswith(magic)), None)
        if opener is None:
            break
        stream = opener(stream)
    return stream


def read_bounded(stream: Reader, limits: Limits, name: str, packed: int | None = None) -> bytes:
    """All of `stream`.

    Args:
        stream: what is read.
        limits: bound its size.
        name: what messages call it.
        packed: bytes of the file that it is expanded from, which bound its size, too.

    Raises:
        DumpError: it holds more, or is damaged.
    """
    limit, remedy = limits.file_bytes, "this is not read"
    if packed is not None and (usual := max(_SMALL, MOST_EXPANSION * packed)) < limit:
        limit, remedy = usual, "expand it yourself to have it read"
    content = read_some(stream, limit + 1, name)
    if len(content) > limit:
        raise DumpError(f"{name}: expands to more than {size_text(limit)}; {remedy}")
    return content


def read_some(stream: Reader, size: int, name: str) -> bytes:
    """At most `size` bytes of `stream`; raises DumpError when it is damaged before that."""
    # Gives its content away without a copy, which a list of parts could not.
    whole = io.BytesIO()
    missing = size
    try:
        while missing and (part := stream.read(min(missing, _CHUNK))):
            whole.write(part)
            missing -= len(part)
    except DAMAGE as error:
        raise DumpError(f"{name}: damaged: {error or type(error).__name__}") from error
    return whole.getvalue()


def copy_bounded(stream: Reader, target: IO[bytes], limit: int, name: str) -> None:
    """Copy `stream` to `target`; raises DumpError as `read_bounded` does."""
    copied = 0
    while part := read_some(stream, _CHUNK, name):
        copied += len(part)
        if copied > limit:
            raise DumpError(f"{name}: expands to more than {size_text(limit)}; this is not read")
        try:
            target.write(part)
        except OSError as error:
            raise DumpError(f"{name}: no room to expand it: {error.strerror or error}") from error


#: Changes when a file does.
Stamp: TypeAlias = tuple[int | str, ...]


class File(Struct, frozen=True):
    """What is opened to read something.

    Attributes:
        path: of this machine, or a URL.
        version: of a remote object, as the listing told it; empty for the present one.
    """

    path: str
    version: str = ""

    def __str__(self) -> str:
        return self.path

    @property
    def is_remote(self) -> bool:
        """Whether it is an object of a store."""
        return is_url(self.path)


@contextmanager
def open_file(file: File, limits: Limits) -> Iterator[IO[bytes]]:
    """A file, open for reading, of a remote one its local copy; raises DumpError when that fails."""
    if file.is_remote:
        from hlotool.system.store_copies import opened

        with opened(file.path, file.version, limits.archive_bytes) as raw:
            yield raw
        return
    try:
        raw = open(file.path, "rb")  # noqa: SIM115 (closed below; only opening may raise the errors named here)
    except OSError as error:
        raise unreadable(file.path, error) from error
    with raw:
        yield raw


def unreadable(path: str, error: OSError) -> DumpError:
    """One line for the usual reasons why a file cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return DumpError(f"{path}: no such file or directory")
    return DumpError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}")


def stamp(file: File) -> Stamp:
    """Changes when the file does; raises DumpError when it is gone."""
    if file.is_remote:
        return (file.version,)
    try:
        status = os.stat(file.path)
    except OSError as error:
        raise unreadable(file.path, error) from error
    return stamp_of(status)
