"""How much of the machine there is for this process."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores that this process may use; fewer than the machine has under taskset or in a container."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
