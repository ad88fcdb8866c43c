"""Files of a task that a machine does not have: their contents travel with the task.

What a task reads are its sources. On the machine that works on it, each source is either the same file, known
by its size and its time of change, or a copy; a copy calls itself by the name of the original, so that rows
and errors are the same wherever a task is run.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from hlotool.cache.fingerprint import digest
from hlotool.cache.whole import write_whole
from hlotool.dump import containers
from hlotool.dump.compression import DEFAULT_LIMITS
from hlotool.dump.source import Source
from hlotool.errors import DumpError
from hlotool.stores.urls import is_url

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as the first process sees it.

    Attributes:
        path: absolute or relative to `folder`.
        size: in bytes.
        changed: its time of change, in nanoseconds.
    """

    path: str
    size: int
    changed: int


def files_of(argument: object) -> list[Seen]:
    """The files of this machine that a task reads; those that are gone are left for the task to find out."""
    found: dict[str, Seen] = {}
    for source in _sources(argument):
        if not is_url(source.path) and source.path not in found:
            try:
                status = os.stat(source.path)
            except OSError:
                continue
            found[source.path] = Seen(source.path, status.st_size, status.st_mtime_ns)
    return list(found.values())


def are_here(files: list[Seen], folder: str) -> bool:
    """Whether this machine has the same files; `folder` is the working directory of the first process."""
    for file in files:
        try:
            status = os.stat(os.path.join(folder, file.path))
        except OSError:
            return False
        if (status.st_size, status.st_mtime_ns) != (file.size, file.changed):
            return False
    return True


#: By path and member, compressed; what cannot be read is left out.
Contents = Mapping[tuple[str, str], bytes]


def contents_of(argument: object) -> Contents:
    """All that a task reads of the files of this machine."""
    found: dict[tuple[str, str], bytes] = {}
    for source in _sources(argument):
        key = source.path, source.member
        if key in found or is_url(source.path):
            continue
        try:
            found[key] = zlib.compress(containers.read(source.file, source.member, DEFAULT_LIMITS), 1)
        except DumpError:
            continue
    return found


def unpacked(argument: _T, contents: Contents, folder: Path) -> _T:
    """The task with copies, which lie below `folder`, in the place of its files."""
    copies: dict[tuple[str, str], str] = {}
    for (path, member), content in contents.items():
        original = Source(path, member)
        copy = folder / digest(path, member, content) / original.name
        copies[path, member] = str(copy)
        if not copy.exists():
            # The threads of a worker may be sent the same file at the same time.
            write_whole(copy, zlib.decompress(content))

    def moved(source: Source) -> Source:
        copy = copies.get((source.path, source.member))
        if copy is None:
            return source
        shown = source.shown or source.path
        shown = f"{shown}!{source.member}" if source.member else shown
        return replace(source, path=copy, member="", shown=shown)

    return _with_sources(argument, moved)  # type: ignore[no-any-return]


def _sources(value: object) -> Iterator[Source]:
    if isinstance(value, Source):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _sources(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _sources(getattr(value, field.name))


def _with_sources(value: Any, moved: Any) -> Any:
    """The same value, every source replaced; parts without sources stay the objects that they are."""
    if isinstance(value, Source):
        return moved(value)
    if isinstance(value, tuple | list):
        parts = [_with_sources(part, moved) for part in value]
        is_same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if is_same else type(value)(parts)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    old = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    new = {name: _with_sources(part, moved) for name, part in old.items()}
    is_same = all(new[name] is old[name] for name in old)
    return value if is_same else replace(value, **new)
