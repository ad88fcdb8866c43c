"""A bisection from a path to culprits, in one call."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hlotool.backends.registry import get_backend
from hlotool.replay.options import PRELOAD, ReplayOptions, RunOptions
from hlotool.replay.task import find_tasks
from hlotool.search.bisection.compiling import Compiler
from hlotool.search.bisection.directory import Findings, bisect_directory
from hlotool.search.bisection.records import CulpritRecord
from hlotool.search.bisection.stage_oracle import StageOracle
from hlotool.search.bisection.trigger import try_culprits
from hlotool.search.steps import Steps
from hlotool.workers.pool import Limits, Pool

#: Seconds for each comparison.
_TIMEOUT = 300.0


def bisect_path(path: str, options: ReplayOptions, backend: str | None = None) -> list[CulpritRecord]:
    """Bisect all modules under `path`; nothing is printed or kept.

    Args:
        path: of a dump, or of any program when `backend` is given.
        options: of the comparisons.
        backend: compiles the programs here.

    Raises:
        DumpError: the path cannot be read.
        UsageError: no such backend.
    """
    if backend is not None:
        get_backend(backend)
    tasks = find_tasks([path], options, [])
    findings = Findings()
    with Pool(Limits(1, _TIMEOUT), PRELOAD, options.reference) as pool:
        oracle = StageOracle(pool, Steps())
        if backend is None:
            bisect_directory(tasks, oracle, findings)
        else:
            with tempfile.TemporaryDirectory(prefix="hlotool-bisect-") as folder:
                Compiler(backend, Path(folder), oracle).bisect(tasks, findings)
            try_culprits(findings.culprits, tasks, backend, RunOptions(timeout=_TIMEOUT), oracle.steps)
    return findings.culprits
