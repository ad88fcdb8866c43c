"""How long a process could have run and no processor was free: on a busy machine that is most of its time.

Linux counts that for each thread (`/proc/PID/task/TID/schedstat`, its second number, in nanoseconds).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

#: How many times a limit a process may starve before that counts as well: somebody waits for the answer.
MOST_STARVED = 20.0

_PROCESSES = Path("/proc")


def seconds_starved(pid: int) -> float:
    """Seconds that a process and its descendants have waited for processors; 0 where nobody counts.

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
