"""`hlotool inspect`: what a dump holds, and what kernels its programs become."""

from __future__ import annotations

import argparse
import re
import time
from typing import TYPE_CHECKING

from hlotool.cli.numbers import quoted
from hlotool.cli.options import (
    add_only_option,
    add_output_options,
    add_paths,
    add_stages_option,
    add_worker_options,
)
from hlotool.cli.output import finish
from hlotool.errors import DumpError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlotool.check.findings import FailedFile
    from hlotool.dump.records import Dump
    from hlotool.inspect.records import ModuleInfo
    from hlotool.report.inspect_records import InspectRecord

USAGE = "inspect [options] PATH ..."
ABOUT = "what a dump holds: functions, opcodes, sizes, memory, arithmetic, kernels"
DESCRIPTION = """\
Say what a dump holds, without running anything: functions and how often each was compiled, stages,
instructions, parameters and results, memory and arithmetic as XLA counts them, loops, collectives,
transfers to the host, custom calls.
"""
EXAMPLES = """\
examples:
  hlotool inspect DIR                             the functions of a dump, the largest first
  hlotool inspect DIR --only train_step           one module, in detail
  hlotool inspect FILE.hlo --json                 everything, for scripts
  hlotool inspect FILE.hlo --kernels              the CUDA kernels that are generated for it
  hlotool inspect DIR --kernels --arch sm_100     the same of every module, for another GPU
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_paths(parser)
    group = parser.add_argument_group("what to look at")
    add_only_option(group)
    add_stages_option(group)
    group = parser.add_argument_group("kernels", "generated for the last stage, as the cuda backend does")
    group.add_argument("--kernels", action="store_true", help="source, launches, resources, host fallbacks")
    group.add_argument(
        "--arch", metavar="SM", type=_architecture, default="sm_90", help="to compile them for [sm_90]"
    )
    add_worker_options(parser)
    add_output_options(parser)


def _architecture(text: str) -> str:
    if not re.fullmatch(r"sm_[0-9]{2,3}[af]?", text):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is no architecture; write it like sm_90")
    return text


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    from hlotool.inspect.run import PRELOAD
    from hlotool.workers.cores import worker_count
    from hlotool.workers.pool import Limits, Pool

    failures: list[FailedFile] = []
    with Pool(Limits(worker_count(arguments.jobs), arguments.timeout), PRELOAD) as pool:
        pool.start()
        from hlotool.inspect.run import find_tasks, inspect_all

        dumps = _dumps(arguments.paths, failures)
        architecture = arguments.arch if arguments.kernels else ""
        modules = inspect_all(find_tasks(dumps, arguments.only, arguments.stages, architecture), pool)
    record = _record(arguments, dumps, modules, failures, time.perf_counter() - start)
    return finish(record, arguments)


def _dumps(paths: Sequence[str], failures: list[FailedFile]) -> list[Dump]:
    """The dumps under `paths`; one that holds nothing is a failure among others, and an error alone."""
    from hlotool.check.findings import FailedFile
    from hlotool.dump.directory import open_dumps
    from hlotool.findings.errors import error_record

    def unusable(path: str, error: DumpError) -> None:
        failures.append(FailedFile(file=path, module="", error=error_record(error)))

    found = open_dumps(paths, unusable=unusable if len(paths) > 1 else None)
    if not found:
        raise DumpError("; ".join(failure.error.message for failure in failures))
    return found


def _record(
    arguments: argparse.Namespace,
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
        paths=arguments.paths,
        functions=functions_of(modules),
        modules=list(modules),
        failures=failures,
        notes=[*(note for dump in dumps for note in dump.notes), *cuts],
        exit_code=ExitCode.AGREE if is_complete else ExitCode.USAGE,
        seconds=elapsed,
    )
