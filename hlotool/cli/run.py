"""`hlotool run`: replay every module under the paths and compare its stages.

The imports that take time stand inside the functions, after the first worker process is on its way.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlotool.cli.backend_options import add_backend_options, chosen_backends
from hlotool.cli.options import (
    add_execution_options,
    add_input_options,
    add_output_options,
    exit_code_text,
    regex,
    tolerance,
)
from hlotool.errors import BackendUnavailable, HlotoolError

if TYPE_CHECKING:
    from hlotool.findings.records import ErrorRecord
    from hlotool.replay.batch import Batch
    from hlotool.replay.options import RunOptions
    from hlotool.replay.task import Task
    from hlotool.report.records import RunRecord
    from hlotool.workers.pool import Pool

_DESCRIPTION = """\
Replay every module of a dump: run the program as the frontend gave it (before optimizations) and
the program that was compiled (after optimizations) on the same inputs, and compare their results.
"""

_EXAMPLES = """\
examples:
  hlotool run DIR                                 every module of a dump directory
  hlotool run DIR --only train_step --verbose     one module, every detail
  hlotool run dump.tar.gz --jobs 8 --json         an archive, eight processes, JSON for scripts
  hlotool run FILE.hlo --inputs in.npz --outputs out.npz
                                                  does the program give what the hardware gave?
  hlotool run FILE.hlo --backend xla              does real XLA give what the numpy reference gives?
  hlotool run FILE.hlo --reference xla --backend xla:disable=algsimp
                                                  does XLA give the same without one of its passes?
  hlotool run DIR --compare numpy,cuda,xla:gpu    the first is the reference of all others
"""


def add_parser(commands: Any, formatter: type[argparse.HelpFormatter]) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="replay every module of a dump and compare its stages",
        description=_DESCRIPTION,
        epilog=f"{_EXAMPLES}\n{exit_code_text()}",
        formatter_class=formatter,
        usage="hlotool run [options] PATH ...",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="dump directory, HLO file, archive or log")
    _add_choice_options(parser)
    add_input_options(parser)
    _add_comparison_options(parser)
    add_execution_options(parser)
    add_output_options(parser)
    parser.set_defaults(command=execute)


def _add_choice_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to compare")
    group.add_argument("--only", metavar="REGEX", type=regex, help="modules whose name matches")
    group.add_argument(
        "--stages",
        metavar="REF,TESTED",
        default="",
        help="shell patterns of stage names, the reference first; '*' tests every stage",
    )
    add_backend_options(group)


def _add_comparison_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tolerance", "derived per output from its type and its sums, unless")
    group.add_argument("--rtol", type=tolerance, help="relative to the larger magnitude")
    group.add_argument("--atol", type=tolerance, help="absolute")
    group.add_argument("--save-outputs", metavar="DIR", help="write expected and actual arrays as .npy")
    group.add_argument(
        "--first-divergence",
        action=argparse.BooleanOptionalAction,
        help="name the instruction at which a differing program goes wrong [where that takes seconds]",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    from hlotool.replay.options import PRELOAD
    from hlotool.workers.pool import Limits, Pool

    options = run_options(arguments)
    limits = Limits(options.workers, options.timeout, options.memory_limit)
    error: HlotoolError | None = None
    notes: list[str] = []
    label = " or ".join(dict.fromkeys((options.reference, *options.tested_backends)))
    with Pool(limits, PRELOAD, label) as pool:
        pool.start()
        from hlotool.replay.batch import Batch
        from hlotool.replay.task import for_each_backend, unavailable_row

        try:
            missing = check_backends(options)
            tasks = find_tasks(arguments.paths, options, notes)
            batch = _replay(for_each_backend(tasks, missing), pool, arguments, options, notes)
            batch.rows += [[unavailable_row(backend, why)] for backend, why in missing.items()]
        except HlotoolError as problem:
            if not arguments.json:
                raise
            error, batch = problem, Batch([])
    record = _record(arguments, options, batch, error, notes, time.perf_counter() - start)
    _show(record, arguments)
    return record.exit_code


def run_options(arguments: argparse.Namespace) -> RunOptions:
    """The options as a record.

    Raises:
        UsageError: as `chosen_backends`.
    """
    from hlotool.replay.options import RunOptions

    chosen = chosen_backends(arguments)
    return RunOptions(
        reference=chosen.reference,
        backend=chosen.backend,
        stages=tuple(filter(None, arguments.stages.split(","))),
        inputs=arguments.inputs,
        outputs=arguments.outputs,
        seed=arguments.seed,
        input_range=arguments.input_range,
        rtol=arguments.rtol,
        atol=arguments.atol,
        save_outputs=arguments.save_outputs,
        first_divergence=arguments.first_divergence,
        timeout=arguments.timeout,
        memory_limit=arguments.memory_limit,
        jobs=arguments.jobs,
        only=arguments.only.pattern if arguments.only else None,
        compare=chosen.compare,
    )


def check_backends(options: RunOptions) -> dict[str, BackendUnavailable]:
    """Refuse backends that do not exist, or not with these options, before anything is run on them.

    Returns:
        of several that are compared, those that cannot be used here.

    Raises:
        UsageError: the user's mistake.
        BackendUnavailable: something that the reference needs, or the only other backend, is missing.
    """
    from hlotool.backends.registry import get_backend

    missing: dict[str, BackendUnavailable] = {}
    for name in dict.fromkeys((options.reference, *options.tested_backends)):
        if name == "numpy":
            continue
        try:
            get_backend(name)
        except BackendUnavailable as error:
            if name == options.reference or not options.compare:
                raise
            missing[name] = error
    return missing


def find_tasks(paths: Sequence[str], options: RunOptions, notes: list[str]) -> list[Task]:
    """The modules under `paths` that `--only` asks for; what was passed over goes to `notes`.

    Raises:
        DumpError: a path cannot be read, or holds nothing to replay.
        UsageError: no module matches `--only`.
    """
    from dataclasses import replace

    from hlotool.dump.directory import open_dump
    from hlotool.dump.selection import modules_matching
    from hlotool.replay.task import Task

    dumps = [open_dump(path) for path in paths]
    notes += [note for dump in dumps for note in dump.notes]
    # What cannot be replayed need not travel to the workers: a dump has hundreds of object files.
    return [
        Task(replace(module, artefacts=()), options) for _, module in modules_matching(dumps, options.only)
    ]


def _replay(
    tasks: Sequence[Task],
    pool: Pool,
    arguments: argparse.Namespace,
    options: RunOptions,
    notes: list[str],
) -> Batch:
    from hlotool.cache.journal import Journal
    from hlotool.replay.batch import replay_all
    from hlotool.replay.keys import command_key
    from hlotool.report.progress import progress_for

    # One module has no part that could be finished before the others.
    journal = Journal(command_key(arguments.paths, options)) if len(tasks) > 1 else None
    if not arguments.json:
        # The workers are still busy with imports of their own: a good time for those of the report.
        import hlotool.report.terminal  # noqa: F401
    with progress_for(sys.stderr, len(tasks), arguments.quiet, arguments.verbose) as progress:
        batch = replay_all(tasks, pool, progress, journal, resume=not arguments.no_resume)
    notes += pool.notes
    if journal and journal.problem:
        notes.append(journal.problem)
    return batch


def _record(
    arguments: argparse.Namespace,
    options: RunOptions,
    batch: Batch,
    error: HlotoolError | None,
    notes: Sequence[str],
    elapsed: float,
) -> RunRecord:
    from hlotool.findings.errors import error_record
    from hlotool.report.records import RunRecord, exit_code_of, summary_of, versions

    rows = batch.records
    return RunRecord(
        versions=versions(),
        paths=list(arguments.paths),
        options=options,
        modules=rows,
        summary=summary_of(rows),
        notes=list(notes),
        error=error_record(error) if error else None,
        interrupted=batch.interrupted,
        exit_code=error.exit_code if error else exit_code_of(rows, batch.interrupted),
        seconds=elapsed,
    )


def _show(record: RunRecord, arguments: argparse.Namespace) -> None:
    from hlotool.cli.output import emit, emit_bytes

    if arguments.json:
        import msgspec

        emit_bytes(msgspec.json.encode(record) + b"\n")
        return
    if problem := _lonely_problem(record):
        from hlotool.report.errors import error_text

        print(error_text(problem), file=sys.stderr)
        return
    from hlotool.report.console import console_for, render
    from hlotool.report.terminal import RunReport

    for note in record.notes:
        print(f"hlotool: note: {note}", file=sys.stderr)
    report = RunReport(record, quiet=arguments.quiet, verbose=arguments.verbose)
    emit(render(console_for(sys.stdout), report))


def _lonely_problem(record: RunRecord) -> ErrorRecord | None:
    """The error of a single module that could not even be read: one clear line says it all."""
    from hlotool.findings.verdict import Verdict

    if len(record.modules) == 1 and record.modules[0].verdict is Verdict.BAD_INPUT:
        return record.modules[0].error
    return None
