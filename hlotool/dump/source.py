"""Where a text or proto lies: a file, a member of an archive, a remote object, or a part of one of these.

A `Source` is a small frozen record, so it travels to worker processes as it is; nothing is open until it is
read. Whatever is read is bounded: a file that expands beyond `Limits` is an error, not a full memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from hlotool.dump import containers
from hlotool.dump.compression import DEFAULT_LIMITS, Limits
from hlotool.dump.files import File, Stamp, stamp
from hlotool.errors import DumpError
from hlotool.stores.urls import name_of

if TYPE_CHECKING:
    from hlotool.dump.wrapped import Wrapped

#: What absl logging writes to stderr; a log that merged stderr into stdout has such lines amid the HLO.
_ABSL_LINE = re.compile(rb"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\s:]+:\d+\].*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """Something that can be read, by name.

    Attributes:
        path: of the file or remote object.
        member: name inside the archive, empty when `path` is no archive.
        span: start and end in bytes, when only a part of the content is meant.
        is_log: the part was printed to a log, where other lines may stand between its own.
        item: number of a program that is wrapped in the content, counted from 0.
        shown: what messages call the file, where that is not its path.
        version: of a remote object, as the listing told it; see `hlotool.stores.objects`.
    """

    path: str
    member: str = ""
    span: tuple[int, int] | None = None
    is_log: bool = False
    item: int | None = None
    shown: str = ""
    version: str = ""

    def __str__(self) -> str:
        path = self.shown or self.path
        whole = f"{path}!{self.member}" if self.member else path
        return f"{whole}@{self.span[0]}" if self.span and self.span[0] else whole

    @property
    def file(self) -> File:
        """What is opened to read it."""
        return File(self.path, self.version)

    @property
    def name(self) -> str:
        """The last part of the path: what `parse_name` understands."""
        return name_of(self.member or self.path.replace(os.sep, "/"))

    def read_bytes(self, limits: Limits = DEFAULT_LIMITS) -> bytes:
        """The content, decompressed.

        Raises:
            DumpError: it is gone, may not be read, is damaged, or exceeds `limits.file_bytes`.
        """
        with self._named():
            if self.item is not None:
                return _wrapped(self.file, self.member, limits, stamp(self.file))[self.item].read()
            if self.span is None:
                return containers.read(self.file, self.member, limits)
            part = _whole(self.file, self.member, limits, stamp(self.file))[slice(*self.span)]
        return _ABSL_LINE.sub(b"", part) if self.is_log else part

    def read_text(self, limits: Limits = DEFAULT_LIMITS) -> str:
        """The content as text; bytes that are no UTF-8 appear as `\\xNN`."""
        return decode(self.read_bytes(limits))

    def read_head(self, size: int, limits: Limits = DEFAULT_LIMITS) -> bytes:
        """The first `size` bytes at most, without expanding the rest where that can be avoided."""
        if self.span is None and self.item is None:
            with self._named():
                return containers.read_head(self.file, self.member, size, limits)
        return self.read_bytes(limits)[:size]

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors call a file that hlotool made by the name under which the user knows its content."""
        try:
            yield
        except DumpError as error:
            if not self.shown:
                raise
            raise DumpError(str(error).replace(self.path, self.shown)) from error

    def wrapped(self, number: int) -> Source:
        """Program `number` of those that are wrapped in the content of this source."""
        return replace(self, item=number)

    def part(self, start: int, end: int, is_log: bool = False) -> Source:
        """The bytes from `start` to `end` of the content of this source, which must not be a part itself."""
        return replace(self, span=(start, end), is_log=is_log)


@lru_cache(maxsize=1)
def _whole(file: File, member: str, limits: Limits, known: Stamp) -> bytes:
    """The content that parts are cut from: a log may have hundreds, read one after the other."""
    return containers.read(file, member, limits)


@lru_cache(maxsize=1)
def _wrapped(file: File, member: str, limits: Limits, known: Stamp) -> tuple[Wrapped, ...]:
    """The programs that are wrapped in the content, likewise."""
    from hlotool.dump.wrapped import wrapped_texts

    return wrapped_texts(containers.read(file, member, limits))


def decode(content: bytes) -> str:
    """UTF-8 text, a byte order mark removed; other bytes appear as `\\xNN`."""
    return content.decode("utf-8-sig", errors="backslashreplace")
