"""Paths of this machine and URLs alike: whether something is there, what lies in it, open it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from hlotool.cache.fingerprint import digest
from hlotool.cache.passing import passing_folder
from hlotool.errors import DumpError, StoreError
from hlotool.stores.urls import below, is_url, joined, name_of

#: No file of values or text that belongs to a program is larger.
_MOST = 16 << 30


def is_file(path: str) -> bool:
    """Whether there is such a file; raises StoreError when nobody can tell."""
    return _is_folder(path) is False if is_url(path) else os.path.isfile(path)


def is_folder(path: str) -> bool:
    """Whether there is such a folder, likewise."""
    return _is_folder(path) is True if is_url(path) else os.path.isdir(path)


def exists(path: str) -> bool:
    """Whether there is one of both, likewise."""
    return _is_folder(path) is not None if is_url(path) else os.path.exists(path)


def inside(folder: str, name: str) -> str:
    """The path of `name` in a folder."""
    return joined(folder, name) if is_url(folder) else os.path.join(folder, name)


@contextmanager
def open_bytes(path: str) -> Iterator[IO[bytes]]:
    """A file, open for reading, seekable.

    Raises:
        DumpError: a URL cannot be read.
        OSError: nor can a file of this machine.
    """
    if not is_url(path):
        with open(path, "rb") as file:
            yield file
        return
    from hlotool.stores.copies import opened

    with opened(path, "", _MOST) as file:
        yield file


def here(path: str) -> str:
    """The path of a file or folder on this machine with the content of `path`, and its name.

    Copies are this process's own, and go when it ends.

    Raises:
        DumpError: it cannot be read.
    """
    return _fetched(path) if is_url(path) else path


@cache
def _fetched(url: str) -> str:
    from hlotool.stores.objects import look, objects_below

    target = _folder() / digest(url) / name_of(url)
    found = look(url)
    for one in objects_below(url) if found.is_folder else [found]:
        inner = below(url, one.url) if found.is_folder else ""
        if ".." in inner.split("/"):
            raise DumpError(f"{one.url}: leads out of its folder")
        _copy(one.url, target / inner)
    return str(target)


def _copy(url: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_bytes(url) as content, target.open("wb") as copy:
        shutil.copyfileobj(content, copy)


@cache
def _folder() -> Path:
    return passing_folder()


def _is_folder(url: str) -> bool | None:
    """None where there is nothing."""
    from hlotool.stores.objects import look

    try:
        return look(url).is_folder
    except StoreError:
        raise
    except DumpError:
        return None
