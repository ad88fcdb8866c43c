"""What a worker of a cluster does with a task, and how the files of the task get there.

A child process does the work, so a crash, a hang or a full memory costs the task and never the worker, and
limits are those of the pool of workers.

What a task reads are its sources. On the machine that works on it, each source is either the same file,
known by its size and its time of change, or a copy whose contents travel with the task; a copy calls itself
by the name of the original, so that rows and errors are the same wherever a task is run.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, structs

from hlotool._version import __version__
from hlotool.errors import BackendFailed, DumpError
from hlotool.runs.fleet.identity import made_with_any, own_code
from hlotool.sources import archives
from hlotool.sources.locations import Source
from hlotool.sources.open_files import DEFAULT_LIMITS
from hlotool.system import urls
from hlotool.system.executor import Limits
from hlotool.system.files import digest, write_whole
from hlotool.system.packages import version_of
from hlotool.system.pool import Pool
from hlotool.system.urls import is_url
from hlotool.system.worker import resolve

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
            found[key] = zlib.compress(archives.read(source.file, source.member, DEFAULT_LIMITS), 1)
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
        return structs.replace(source, path=copy, member="", shown=shown)

    return _with_sources(argument, moved)  # type: ignore[no-any-return]


def _sources(value: object) -> Iterator[Source]:
    if isinstance(value, Source):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _sources(part)
    else:
        for name in _fields(value):
            yield from _sources(getattr(value, name))


def _with_sources(value: Any, moved: Any) -> Any:
    """The same value, every source replaced; parts without sources stay the objects that they are."""
    if isinstance(value, Source):
        return moved(value)
    if isinstance(value, tuple | list):
        parts = [_with_sources(part, moved) for part in value]
        is_same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if is_same else type(value)(parts)
    old = {name: getattr(value, name) for name in _fields(value)}
    new = {name: _with_sources(part, moved) for name, part in old.items()}
    if all(new[name] is old[name] for name in old):
        return value
    return structs.replace(value, **new) if isinstance(value, Struct) else replace(value, **new)


def _fields(value: object) -> tuple[str, ...]:
    """The names of a record's fields; none of what is no record."""
    if isinstance(value, Struct):
        return value.__struct_fields__
    if not is_dataclass(value) or isinstance(value, type):
        return ()
    return tuple(field.name for field in fields(value) if field.init)


#: Packages that decide about results; those that are installed nowhere are equal everywhere.
_DECIDING = ("numpy", "ml_dtypes", "scipy", "jax", "jaxlib")


@dataclass(frozen=True, slots=True)
class Setup:
    """How a worker's child process is set up.

    Attributes:
        limits: of a task; `jobs` is how many tasks run on the machine at a time.
        preload: modules that it imports first.
        backend: named in the errors of tasks that fail.
        secrets: of URLs, by masked URL.
        versions: of the first process, which results have to be of.
        machine: of the first process; see `machine_here`.
    """

    limits: Limits
    preload: tuple[str, ...]
    backend: str
    secrets: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    machine: str


@dataclass(frozen=True, slots=True)
class Order:
    """A task on its way to a worker.

    Attributes:
        function: what to call, `package.module:name`.
        argument: the task, pickled.
        files: that it reads.
        folder: the working directory of the first process.
        contents: of its files, where they are sent; None where the worker is to find them.
    """

    function: str
    argument: bytes
    files: list[Seen]
    folder: str
    contents: Contents | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a task.

    Attributes:
        value: its result in MessagePack; None where there is none.
        failure: why there is none: the kind of error, and its arguments.
        so_far: what the task had handed over before it failed.
        seconds: wall time of the call.
        notes: warnings for the user.
        is_blind: this machine has not got the files.
        versions: of this machine, where they are not those that results have to be of.
        is_as_there: the first process's machine would have found the same to the last bit.
    """

    value: bytes | None = None
    failure: tuple[type[BackendFailed], str, str, str] | None = None
    so_far: tuple[bytes, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    is_blind: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    is_as_there: bool = False


@cache
def versions_here() -> dict[str, str]:
    """What decides about results besides the program and the options."""
    found = {
        "hlotool": f"{__version__} ({own_code()[:8]})",
        "python": ".".join(map(str, sys.version_info[:2])),
    }
    return found | {name: version for name in _DECIDING if (version := version_of(name))}


def machine_here() -> str:
    """A key that machines share which find the same to the last bit."""
    import dask

    # The number of threads that Dask chooses for workers stands for that which a pool chooses for children.
    chosen = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    return made_with_any(frozenset(n for n, value in chosen.items() if os.environ.get(n) == str(value)))


def dask_setup(worker: object) -> None:
    """Called by Dask in workers that a command has started on its own machine: Ctrl-C is for the command."""
    with suppress(ValueError):  # not the main thread of its process
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_order(setup: Setup, order: Order) -> Reply:
    """Run a task in the child process of this thread."""
    if (mine := versions_here()) != dict(setup.versions):
        return Reply(versions=mine)
    if order.contents is None and not are_here(order.files, order.folder):
        return Reply(is_blind=True)
    urls.adopt(dict(setup.secrets))
    argument = pickle.loads(order.argument)
    if order.contents is not None:
        argument = unpacked(argument, order.contents, _scratch())
    pool = _pool(setup)
    [done] = pool.call_all(f"{__name__}:call_in_folder", [(order.folder, order.function, argument)])
    notes = tuple(pool.notes)
    is_as_there = machine_here() == setup.machine
    if isinstance(done.value, BackendFailed):
        error = done.value
        failure = type(error), error.backend, error.message, error.log
        failed = Reply(failure=failure, so_far=tuple(done.so_far), seconds=done.seconds)
        return replace(failed, notes=notes, is_as_there=is_as_there)
    return Reply(done.value, seconds=done.seconds, notes=notes, is_as_there=is_as_there)


def call_in_folder(order: tuple[str, str, Any]) -> Any:
    """In the child process: call a function where relative paths mean what they meant to the first process.

    Where there is no such folder, what the function needs was sent.
    """
    folder, function, argument = order
    with suppress(OSError):
        os.chdir(folder)
    return resolve(function)(argument)


_own = threading.local()


def _pool(setup: Setup) -> Pool:
    """The pool of this thread: one process, which ends with the worker."""
    if getattr(_own, "setup", None) != setup:
        if hasattr(_own, "pool"):
            _own.pool.close()
        _own.setup, _own.pool = setup, Pool(setup.limits, setup.preload, setup.backend)
    found: Pool = _own.pool
    return found


@cache
def _scratch() -> Path:
    """Where files lie that were sent; removed when the worker ends in order."""
    from hlotool.system.files import passing_folder

    return passing_folder() / str(os.getpid())
