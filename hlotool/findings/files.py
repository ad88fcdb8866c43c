"""Files that the user names: what keeps one from being read or written is said in one line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from hlotool.errors import HlotoolError, InputError, UsageError

_T = TypeVar("_T")


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Whatever keeps `path` from being written becomes a UsageError that names it."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


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
        HlotoolError: of the class `error`: it cannot be read, is no TOML, or holds something of another type.
    """
    try:
        return msgspec.convert(tomllib.loads(read_whole(path, error).decode("utf-8")), kind)
    except (msgspec.ValidationError, RecursionError, ValueError) as problem:
        # ValueError: what is not TOML, not UTF-8, or a number of thousands of digits.
        raise error(f"{path}: {problem}") from problem
