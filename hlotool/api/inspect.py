"""`inspect`: what a dump holds, and what kernels its programs become."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotool.api.results import Result
from hlotool.errors import ExitCode
from hlotool.options import parsers
from hlotool.options.declared import Arguments, option, takes
from hlotool.options.shared import Only, Paths, Stages, Workers

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


class _Looked(Only, Stages, group="what to look at"): ...


class _Kernels(Arguments, group="kernels", about="generated for the last stage, as the cuda backend does"):
    kernels: bool = option(
        "source, launches, resources, host fallbacks",
        "the CUDA kernels that are generated for the last stage, too",
        default=False,
    )
    arch: str = option("to compile them for [sm_90]", default="sm_90", parse=parsers.architecture)


class InspectArguments(Paths, _Looked, _Kernels, Workers):
    """What `inspect` takes, and `hlotool inspect`."""


@takes(InspectArguments)
def inspect(asked: InspectArguments) -> InspectResult:
    """What a dump holds, without running anything.

    Functions and how often each was compiled, stages, instructions, parameters and results, memory and
    arithmetic as XLA counts them, loops, collectives, transfers to the host, custom calls.

    Raises:
        DumpError: no path can be read.
        UsageError: no module or stage matches, an impossible argument.
    """
    start = time.perf_counter()
    from hlotool.inspect.run import PRELOAD
    from hlotool.workers.cores import worker_count
    from hlotool.workers.executor import Limits
    from hlotool.workers.pool import Pool

    failures: list[FailedFile] = []
    with Pool(Limits(worker_count(asked.jobs), asked.timeout), PRELOAD) as pool:
        pool.start()
        from hlotool.check.findings import unreadable
        from hlotool.dump.directory import open_usable
        from hlotool.inspect.run import find_tasks, inspect_all

        dumps = open_usable(asked.paths, lambda *path: failures.append(unreadable(*path)))
        tasks = find_tasks(dumps, asked.only, asked.stages, asked.arch if asked.kernels else "")
        modules = inspect_all(tasks, pool)
    return InspectResult(_record(asked.paths, dumps, modules, failures, time.perf_counter() - start))


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
