"""What a process may use of the machine: processors, memory, time, and work that is counted.

Memory: what the user says, else a share of what is free when a call begins. The share bounds what a process
can write to (RLIMIT_DATA): that is where arrays lie, while address space that libraries only reserve costs
nothing. A limit that the user sets bounds all of the address space (RLIMIT_AS), as `ulimit -v` does, and
holds for the processes that the worker starts, too.

Starvation is how long a process could have run while no processor was free: on a busy machine that is most
of its time. Linux counts it for each thread (`/proc/PID/task/TID/schedstat`, its second number, in
nanoseconds).

A time limit within a process is for what may never end and is not worth a process of its own. Counted work
is the same on every machine, under any load: code that does something that takes time says how much it is
(`spend`), before doing it and by nothing but what is asked: sizes, counts, opcodes; never by a clock, nor
by what a cache happens to hold. A limit on it cuts at the same place in every run, where a time limit cuts
wherever the machine has got to.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final


def usable_cores() -> int:
    """Cores that this process may use: fewer than the machine has under taskset and in some containers."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count(jobs: int, most: int = 4) -> int:
    """`jobs` if given, else one per core, but at most `most`: each holds the values of a whole program."""
    return jobs or min(most, usable_cores())


#: Of the memory that is free. The rest is for the system, its file cache and this process.
SHARE = 0.8

_MEMORY = Path("/proc/meminfo")
_GROUPS = Path("/proc/self/cgroup")
_GROUP_ROOT = Path("/sys/fs/cgroup")
_STATUS = Path("/proc/self/status")


def free_memory() -> int | None:
    """Bytes that the system, or the container, could still give away; None where the system does not say."""
    known = [_number_after(_MEMORY, "MemAvailable") or None, *map(_group_free, _group_folders())]
    return min((size for size in known if size is not None), default=None)


def share_of_free(sharers: int) -> int:
    """Bytes for each of `sharers` processes that begin now; 0 where it is unknown what is free.

    A process that has a share itself hands on no more than it has left.
    """
    free = free_memory()
    if free is None:
        return 0
    return max(1, int(min(SHARE * free, *_growth_left()) / sharers))


def limit_address_space(limit: int) -> list[str]:
    """Bound this process's address space to `limit` bytes (0: leave it); returns notes for the user."""
    if not limit:
        return []
    try:
        import resource
    except ImportError:
        return ["--memory-limit has no effect on this platform"]
    try:
        # The hard limit stays where it was: files that are mapped get addresses beside (`allow_mapping`).
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(
            resource.RLIMIT_AS, (limit, most if most == resource.RLIM_INFINITY else max(limit, most))
        )
    except (ValueError, OSError, OverflowError) as error:
        return [f"--memory-limit has no effect here: {error}"]
    return []


def allow_mapping(size: int) -> None:
    """Let this process's address space grow by a file of `size` bytes that it maps: that is no memory.

    A limit that others have set on the process (`ulimit -v`) stands; then there may be no addresses for it.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit, most = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return
        wanted = limit + size
        if most != resource.RLIM_INFINITY:
            wanted = min(wanted, most)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


def address_space_limit() -> int:
    """The bound on this process's address space in bytes, which its workers inherit; 0 when there is none."""
    try:
        import resource
    except ImportError:
        return 0
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return 0 if limit == resource.RLIM_INFINITY else limit


def limit_growth(share: int) -> None:
    """Let this process write to `share` bytes more than it can now (0: to any), until it is asked again."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = _number_after(_STATUS, "VmData") + share if share else resource.RLIM_INFINITY
        if most != resource.RLIM_INFINITY and not 0 <= wanted <= most:
            wanted = most
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def memory_left() -> float:
    """Bytes that this process may still take; infinite where no limit is known."""
    limit = address_space_limit()
    free = free_memory()
    known = [*_growth_left(), float("inf") if free is None else SHARE * free]
    return min(known) if not limit else min(*known, limit - _number_after(_STATUS, "VmSize"))


def left_within(limit: int) -> float:
    """Bytes that a process like this one may take under a limit of `limit` bytes on its address space."""
    return min(memory_left(), limit - _number_after(_STATUS, "VmSize"))


def _growth_left() -> Iterator[float]:
    """What `limit_growth` leaves this process; nothing where it is not limited."""
    with contextlib.suppress(ImportError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
        yield float("inf") if limit == resource.RLIM_INFINITY else limit - _number_after(_STATUS, "VmData")


def _group_folders() -> list[Path]:
    """The folders of this process's control groups that may bound memory: version 2, then version 1."""
    folders = []
    for line in _text(_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or "memory" in controllers.split(","):
            root = _GROUP_ROOT / "memory" if controllers else _GROUP_ROOT
            # Inside a container the path is often that of the host, and the root is the container's own.
            folders += [root / path.lstrip("/"), root]
    return folders


def _group_free(folder: Path) -> int | None:
    for limit, used, cached in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, taken = _text(folder / limit).strip(), _text(folder / used).strip()
        if most.isdecimal() and taken.isdecimal():
            return max(0, int(most) - int(taken) + _number_after(folder / "memory.stat", cached))
    return None


def _number_after(file: Path, name: str) -> int:
    """Bytes in the line of `file` that begins with `name`; 0 where there is none."""
    for line in _text(file).splitlines():
        word, _, rest = line.replace(":", " ", 1).partition(" ")
        if word == name:
            number, *unit = rest.split()
            return int(number) << (10 if unit == ["kB"] else 0)
    return 0


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


#: How many times a limit a process may starve before that counts as well: somebody waits for the answer.
MOST_STARVED = 20.0

_PROCESSES = Path("/proc")


def seconds_starved(pid: int) -> float:
    """Seconds that a process and its descendants have waited for processors; 0 where that is not counted.

    A process waits as long as the thread does that waits longest; descendants work for it while it sleeps, so
    their time is added.
    """
    longest = 0.0
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in (_PROCESSES / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                longest = max(longest, int((thread / "schedstat").read_text().split()[1]) / 1e9)
                children += map(int, (thread / "children").read_text().split())
    return longest + sum(map(seconds_starved, children))


def extended(limit: float, starved: float) -> float:
    """Seconds after which a call has had its `limit`, having starved for so many."""
    return limit + min(max(0.0, starved), MOST_STARVED * limit)


@cache
def _is_frozen() -> bool:
    """Whether this process keeps objects from the collector, as workers do; to be told, all are counted."""
    return gc.get_freeze_count() > 0


@contextmanager
def collector_off() -> Iterator[None]:
    """No cyclic collection while objects only become more: it would scan them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not _is_frozen():
                # What was made is old at once: the garbage collector need not look through it again.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


#: Units of work that a core of 2020 does in a second: one is about a nanosecond.
UNITS_PER_SECOND: Final = 1_000_000_000

_NEVER: Final = float("inf")


class TooMuchWork(BaseException):
    """More work than was allowed; no `except Exception` on the way takes it for a failure of its own."""


class _Count:
    """The work of this process, of all its threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.done = 0
        self.end = _NEVER


_count = _Count()


def work_done() -> int:
    """Units of work that this process has done; differences tell something, the number itself does not."""
    return _count.done


def spend(units: int) -> None:
    """Count work that is about to be done.

    Raises:
        TooMuchWork: it is more than the limit allows.
    """
    # Devices of a program are threads. Sums of integers do not depend on the order.
    with _count.lock:
        _count.done += units
    if _count.done > _count.end:
        raise TooMuchWork


def in_words(units: int) -> str:
    """How long so much work takes on a usual machine, as `takes about 12 s`."""
    return f"takes about {units / UNITS_PER_SECOND:.0f} s"


@contextmanager
def work_limit(units: float) -> Iterator[None]:
    """Raise TooMuchWork when the block does more.

    Args:
        units: that the block may spend; an enclosing limit holds as well.
    """
    previous = _count.end
    _count.end = min(previous, _count.done + units)
    try:
        yield
    finally:
        _count.end = previous


# A time limit within a process, for what may never end and is not worth a process of its own.

#: A limit that no timer can hold is as good as this.
_LONGEST = 1e8
#: Seconds after which it is raised again: where nothing can be raised, as in a callback of the garbage
#: collector, Python drops it.
_AGAIN = 1.0


class TooSlow(BaseException):
    """The time is over; no `except Exception` on the way takes it for a failure of its own."""


class _Alarm:
    """Whether alarms of this process raise TooSlow already."""

    is_ours = False


@contextmanager
def alarms() -> Iterator[None]:
    """Let alarms raise TooSlow within the block, so that its many time limits need not each say so."""
    if _Alarm.is_ours or not _is_interruptible():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _stop)
    _Alarm.is_ours = True
    try:
        yield
    finally:
        _Alarm.is_ours = False
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlow when the block takes longer.

    Only the main thread of a process on POSIX can be interrupted: elsewhere there is no limit.
    """
    if not _is_interruptible():
        yield
        return
    with nullcontext() if _Alarm.is_ours else alarms():
        signal.setitimer(signal.ITIMER_REAL, min(max(seconds, 1e-3), _LONGEST), _AGAIN)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _is_interruptible() -> bool:
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooSlow("more time than there was")
