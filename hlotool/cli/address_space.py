"""What a small address space (`ulimit -v`) does to libraries of C, and saying so before they die of it.

OpenBLAS reserves memory for each thread when NumPy is imported. Where it gets none it ends the process with a
status that means something else here, or sends it the signal of Ctrl-C.
"""

from __future__ import annotations

import os

#: Less than this, and NumPy cannot be imported and used: measured with NumPy 2.4 on Linux, one thread.
LEAST = 290 << 20
#: Enough for as many threads as OpenBLAS takes by itself: it reserves 32 MiB for each of 64 at most.
_ROOM = 4 << 30


def lack_of_address_space() -> str:
    """Why nothing can be done in this process, in one line; empty where there is room enough.

    Where there is little of it, OpenBLAS gets one thread, unless the user says how many.
    """
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError, ValueError):
        return ""
    if limit == resource.RLIM_INFINITY or limit >= _ROOM:
        return ""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if limit >= LEAST:
        return ""
    return (
        f"out of memory: the address space of this process is limited to {limit >> 20} MiB (ulimit -v), and"
        f" NumPy alone needs {LEAST >> 20} MiB; a limit for the programs that are run is --memory-limit"
    )
