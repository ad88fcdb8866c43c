"""How many workers suit the machine."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores that this process may use: fewer than the machine has under taskset and in some containers."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count(jobs: int, most: int = 4) -> int:
    """`jobs` if given, else one per core, but at most `most`: each holds the values of a whole program."""
    return jobs or min(most, usable_cores())
