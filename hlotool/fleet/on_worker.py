"""What a worker of a cluster does with a task: a child process of its own does the work.

So a crash, a hang or a full memory costs the task and never the worker, and limits are those of
`workers.pool`.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hlotool._version import __version__
from hlotool.errors import BackendFailed
from hlotool.fleet.identity import made_with_any, own_code
from hlotool.fleet.shipping import Contents, Seen, are_here, unpacked
from hlotool.stores import masks
from hlotool.workers.executor import Limits
from hlotool.workers.pool import Pool
from hlotool.workers.worker import resolve

#: Packages that decide about results; those that nobody has are equal everywhere.
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
    for name in _DECIDING:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


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
    masks.adopt(dict(setup.secrets))
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
    from hlotool.cache.passing import passing_folder

    return passing_folder() / str(os.getpid())
