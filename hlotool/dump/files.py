"""A file, of this machine or of a store: opened, and known again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TypeAlias

from hlotool.cache.fingerprint import stamp_of
from hlotool.dump.compression import Limits
from hlotool.errors import DumpError
from hlotool.stores.urls import is_url

#: Changes when a file does.
Stamp: TypeAlias = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class File:
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
        from hlotool.stores.copies import opened

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
