"""How much memory a process may take: what the user says, else a share of what is free when a call begins.

The share bounds what a process can write to (RLIMIT_DATA): that is where arrays lie, while address space that
libraries only reserve costs nothing. A limit that the user sets bounds all of the address space (RLIMIT_AS),
as `ulimit -v` does, and holds for the processes that the worker starts, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

#: Of the memory that is free. The rest is for the system, its file cache and this process.
SHARE = 0.8

_MEMORY = Path("/proc/meminfo")
_GROUPS = Path("/proc/self/cgroup")
_GROUP_ROOT = Path("/sys/fs/cgroup")
_STATUS = Path("/proc/self/status")


def free_memory() -> int | None:
    """Bytes that the system, or the container, could still give away; None where nobody says."""
    known = [_number_after(_MEMORY, "MemAvailable") or None, *map(_group_free, _group_folders())]
    return min((size for size in known if size is not None), default=None)


def share_of_free(sharers: int) -> int:
    """Bytes for each of `sharers` processes that begin now; 0 where nobody says what is free.

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
    """Bytes that this process may still take; infinite where nobody says."""
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
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, taken = _text(folder / limit).strip(), _text(folder / used).strip()
        if most.isdecimal() and taken.isdecimal():
            return max(0, int(most) - int(taken) + _number_after(folder / "memory.stat", cache))
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
