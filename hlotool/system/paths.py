"""Paths of this machine and URLs alike: opened and listed, and files of the user read and written.

What keeps a file that the user names from being read or written is said in one line.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

from hlotool.errors import DumpError, HlotoolError, InputError, StoreError, UsageError
from hlotool.system.files import digest, passing_folder, write_over
from hlotool.system.store_access import upload
from hlotool.system.urls import below, is_url, joined, name_of, taken_in
from hlotool.system.user_input import KeyPath, line_of

#: No file of values or text that belongs to a program is larger.
_MOST = 16 << 30


def is_file(path: str) -> bool:
    """Whether there is such a file; raises StoreError when that cannot be found out."""
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
    from hlotool.system.store_copies import opened

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
    from hlotool.system.store_objects import look, objects_below

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
    from hlotool.system.store_objects import look

    try:
        return look(url).is_folder
    except StoreError:
        raise
    except DumpError:
        return None


_T = TypeVar("_T")

#: How the standard library's reader says where something is wrong.
_TOML_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Whatever keeps `path` from being written becomes a UsageError that names it."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def write_file(path: str | os.PathLike[str], pieces: Iterable[bytes]) -> None:
    """Write a file of this machine or, by its URL, of a store; until it is written it is what it was.

    Raises:
        UsageError: it cannot be written.
        DumpError: nor can the store's.
    """
    path = taken_in(os.fspath(path))
    if is_url(path):
        upload(path, b"".join(pieces))
        return
    with writing(path):
        write_over(path, pieces)


def read_file(path: str | os.PathLike[str], error: type[HlotoolError] = InputError) -> bytes:
    """The content of a file, of this machine or, by its URL, of a store.

    Raises:
        HlotoolError: of the class `error`: there is none, or it cannot be read.
        DumpError: nor can the store's.
    """
    path = taken_in(os.fspath(path))
    if not is_url(path):
        return read_whole(Path(path), error)
    with open_bytes(path) as file:
        return file.read()


def read_whole(path: Path, error: type[HlotoolError] = InputError) -> bytes:
    """The content of a regular file; a pipe or a device would be waited for, or never end.

    Raises:
        HlotoolError: of the class `error`: there is none, or it cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise error(f"{path}: not a file")
        return path.read_bytes()
    except OSError as problem:
        raise error(f"{path}: {problem.strerror or problem}") from problem


def read_toml(path: Path, kind: type[_T], error: type[HlotoolError] = InputError) -> _T:
    """The TOML file `path` as a `kind`, a msgspec struct.

    Raises:
        HlotoolError: of the class `error`, with the line: it cannot be read, is no TOML, or holds something
            of another type.
    """
    import msgspec  # the parsers of the command line do without it

    text, document = parse_toml(path, error)
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as problem:
        said, _, place = str(problem).partition(" - at `")
        line = line_of(text, key_path(place))
        raise error(f"{_at(path, line)}: {said}{f' at {place[2:-1]}' if place[2:-1] else ''}") from problem
    except RecursionError as problem:
        raise error(f"{path}: {problem}") from problem


def parse_toml(path: Path, error: type[HlotoolError] = InputError) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file and what it says.

    Raises:
        HlotoolError: of the class `error`, with the line: it cannot be read, or is no TOML.
    """
    import tomllib

    content = read_whole(path, error)
    try:
        text = content.decode("utf-8")
        return text, tomllib.loads(text)
    except (RecursionError, ValueError) as problem:
        # ValueError: what is not TOML, not UTF-8, or a number of thousands of digits.
        found = _TOML_POSITION.search(str(problem))
        said = str(problem)[: found.start()] if found else str(problem)
        last = content.rstrip().count(b"\n") + 1
        place = _at(path, found[1] or last, found[2] or "") if found else path
        raise error(f"{place}: {said}") from problem


def _at(path: Path, line: int | str, column: str = "") -> str:
    """`FILE:LINE:COLUMN`, as far as known."""
    return f"{path}:{line}:{column}" if column else f"{path}:{line}" if line else str(path)


def key_path(place: str) -> KeyPath:
    """The path that msgspec's errors call `$.check.ignore[1].rule`."""
    parts = re.findall(r"\.([^.\[`]+)|\[(\d+)\]", place)
    return tuple(name or int(number) for name, number in parts)
