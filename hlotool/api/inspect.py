"""`inspect`: what a dump holds, and what kernels its programs become."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.api.given import checked, several
from hlotool.api.results import Result
from hlotool.api.spool import Program, paths_of
from hlotool.errors import ExitCode

if TYPE_CHECKING:
    from hlotool.check.findings import FailedFile
    from hlotool.dump.records import Dump
    from hlotool.inspect.records import FunctionInfo, ModuleInfo
    from hlotool.report.inspect_records import InspectRecord


class InspectResult(Result["ModuleInfo"]):
    """What a dump holds: a row for each module."""

    record: InspectRecord

    @property
    def rows(self) -> Sequence[ModuleInfo]:
        """One record per module, in the order of the dump."""
        return self.record.modules

    @property
    def functions(self) -> Sequence[FunctionInfo]:
        """The functions of the user's program, and how often each was compiled."""
        return self.record.functions

    @property
    def failures(self) -> Sequence[FailedFile]:
        """Paths that hold no HLO, where there are others that do."""
        return self.record.failures


def inspect(
    paths: Program | Sequence[Program],
    *,
    only: str | None = None,
    stages: Sequence[str] = (),
    kernels: bool = False,
    arch: str = "sm_90",
    timeout: float = 300.0,
    jobs: int = 0,
) -> InspectResult:
    """What a dump holds, without running anything.

    Functions and how often each was compiled, stages, instructions, parameters and results, memory and
    arithmetic as XLA counts them, loops, collectives, transfers to the host, custom calls.

    Args:
        paths: a dump directory, a file of HLO, an archive, a log, a module, or several of these.
        only: regular expression of the modules' names.
        stages: shell patterns of stage names; the first and the last of each module when empty.
        kernels: the CUDA kernels that are generated for the last stage, too.
        arch: architecture to compile them for.
        timeout: seconds per module.
        jobs: processes; 0 for as many as suit the machine.

    Raises:
        DumpError: no path can be read.
        UsageError: no module or stage matches, an impossible argument.
    """
    checked({"only": only, "arch": arch, "timeout": timeout, "jobs": jobs})
    start = time.perf_counter()
    from hlotool.inspect.run import PRELOAD
    from hlotool.workers.cores import worker_count
    from hlotool.workers.executor import Limits
    from hlotool.workers.pool import Pool

    where = paths_of(paths)
    failures: list[FailedFile] = []
    with Pool(Limits(worker_count(jobs), timeout), PRELOAD) as pool:
        pool.start()
        from hlotool.check.findings import unreadable
        from hlotool.dump.directory import open_usable
        from hlotool.inspect.run import find_tasks, inspect_all

        dumps = open_usable(where, lambda *path: failures.append(unreadable(*path)))
        tasks = find_tasks(dumps, only, several(stages), arch if kernels else "")
        modules = inspect_all(tasks, pool)
    return InspectResult(_record(where, dumps, modules, failures, time.perf_counter() - start))


def _record(
    paths: list[str],
    dumps: Sequence[Dump],
    modules: Sequence[ModuleInfo],
    failures: list[FailedFile],
    elapsed: float,
) -> InspectRecord:
    from hlotool.inspect.run import functions_of
    from hlotool.report.inspect_records import InspectRecord
    from hlotool.report.records import versions

    is_complete = not failures and not any(module.failures for module in modules)
    cuts = [f"{stage.file}: {stage.cut}" for module in modules for stage in module.stages if stage.cut]
    return InspectRecord(
        versions=versions(),
        paths=paths,
        functions=functions_of(modules),
        modules=list(modules),
        failures=failures,
        notes=[*(note for dump in dumps for note in dump.notes), *cuts],
        exit_code=ExitCode.AGREE if is_complete else ExitCode.USAGE,
        seconds=elapsed,
    )
