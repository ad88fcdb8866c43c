"""`hlotool run`: replay every module under the paths and compare its stages.

The imports that take time stand inside the functions, after the first worker process is on its way.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hlotool.cli.options import (
    add_backend_options,
    add_exact_option,
    add_execution_options,
    add_input_options,
    add_only_option,
    add_output_options,
    add_paths,
    add_tolerance_options,
    add_unknown_options,
    budget,
    chosen_backends,
    options_from,
    regex,
    special_kinds,
    words,
)
from hlotool.cli.output import Ending, emit_error, ending, finish
from hlotool.errors import BackendUnavailable
from hlotool.names import did_you_mean

if TYPE_CHECKING:
    from hlotool.cache.journal import Journal
    from hlotool.findings.records import ErrorRecord
    from hlotool.replay.batch import Batch
    from hlotool.replay.options import RunOptions
    from hlotool.replay.records import ModuleRecord
    from hlotool.replay.task import Task
    from hlotool.report.records import RunRecord
    from hlotool.workers.pool import Pool

USAGE = "run [options] PATH ..."
ABOUT = "replay every module of a dump and compare its stages"
DESCRIPTION = """\
Replay every module of a dump: run the program as the frontend gave it (before optimizations) and
the program that was compiled (after optimizations) on the same inputs, and compare their results.
"""
EXAMPLES = """\
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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_paths(parser)
    _add_choice_options(parser)
    add_input_options(parser)
    _add_comparison_options(parser)
    add_execution_options(parser)
    add_output_options(parser)


def _add_choice_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to compare")
    add_only_option(group)
    group.add_argument(
        "--stages",
        metavar="REF,TESTED",
        type=words,
        default=(),
        help="shell patterns of stage names, the reference first; '*': all stages by the first",
    )
    add_backend_options(group)
    add_unknown_options(group)


def _add_comparison_options(parser: argparse.ArgumentParser) -> None:
    add_tolerance_options(parser, by_output=True)
    group = parser.add_argument_group("what is found")
    add_exact_option(group)
    group.add_argument("--save-outputs", metavar="DIR", help="write expected and actual arrays as .npy")
    group.add_argument("--save-values", metavar="DIR", help="write what instructions compute as .npy")
    group.add_argument(
        "--values", metavar="REGEX", type=regex, default="", help="of those whose name matches [all]"
    )
    group.add_argument(
        "--first-divergence",
        action=argparse.BooleanOptionalAction,
        help="name the instruction at which a differing program goes wrong [where that takes seconds]",
    )
    group.add_argument(
        "--fail-on",
        metavar="nan,inf",
        type=special_kinds,
        default=(),
        help="exit 1 where a result holds such a value, even if both sides agree",
    )
    group.add_argument(
        "--coverage",
        action=argparse.BooleanOptionalAction,
        help="list by source line which branches, ties, signs, … the inputs made occur [counts, where cheap]",
    )
    group.add_argument(
        "--thorough",
        action="store_true",
        help="explain every wrong output, not only the worst three; run all further sets of inputs",
    )
    group.add_argument(
        "--budget",
        metavar="SECONDS|FACTORx",
        type=budget,
        help="what judging one comparison, and what further sets of inputs may take, or how many times the"
        " time of the runs [0.4 of --timeout; as long as without them]",
    )
    group.add_argument(
        "--further-sets",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="after the plain generated inputs, others that reach more of the program [yes]",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    from hlotool.replay.options import PRELOAD
    from hlotool.workers.pool import Limits, Pool

    options = run_options(arguments)
    limits = Limits(options.workers, options.timeout, options.memory_limit)
    notes: list[str] = []
    rows: list[ModuleRecord] = []
    journal: Journal | None = None
    label = " or ".join(dict.fromkeys((options.reference, *options.tested_backends)))
    with ending(arguments) as end, Pool(limits, PRELOAD, label) as pool:
        pool.start()
        from hlotool.replay.task import find_tasks, for_each_backend, unavailable_row

        missing = check_backends(options)
        tasks = for_each_backend(find_tasks(arguments.paths, options, notes), missing)
        journal = _journal(tasks, arguments, options)
        batch = _replay(tasks, pool, arguments, journal, notes)
        end.interrupted = batch.interrupted
        if not batch.interrupted:
            notes += _unsafe_updates(tasks, batch.records, pool)
            notes += _unknown_outputs(options, batch.records)
        rows = batch.records + [unavailable_row(backend, why) for backend, why in missing.items()]
    record = _record(arguments, options, rows, end, notes, time.perf_counter() - start)
    if not arguments.json and (problem := _lonely_problem(record)):
        emit_error(problem)
        return record.exit_code
    code = finish(record, arguments)
    if journal is not None and not end.interrupted:
        # Only when everything is printed nothing is lost any more.
        journal.remove()
    return code


def _journal(tasks: Sequence[Task], arguments: argparse.Namespace, options: RunOptions) -> Journal | None:
    """Where rows are kept; None for one module, no part of which could be finished before the others."""
    from hlotool.cache.journal import journal_of
    from hlotool.replay.keys import command_key

    return journal_of("run", command_key(arguments.paths, options)) if len(tasks) > 1 else None


def _unsafe_updates(tasks: Sequence[Task], rows: Sequence[ModuleRecord], pool: Pool) -> Iterator[str]:
    """What is known to go wrong behind the last stage, of the modules whose stages agree."""
    from hlotool.check.in_place import unsafe_updates
    from hlotool.findings.verdict import AGREEING

    # Two dumps may have modules of one title: only with the path it is clear which of them agrees.
    agreeing = {(row.name, row.path) for row in rows if row.verdict in AGREEING}
    modules = {
        task.path: task.module for task in tasks if agreeing & {(task.module.title, p) for p in task.paths}
    }
    return unsafe_updates(modules.values(), pool)


def _unknown_outputs(options: RunOptions, rows: Sequence[ModuleRecord]) -> Iterator[str]:
    """Tolerances of outputs that no program has."""
    from hlotool.findings.outputs import output_index, output_name

    known = {tuple(leaf.index) for row in rows for leaf in row.leaves}
    for name in dict.fromkeys(name for name, _ in (*options.output_rtol, *options.output_atol)):
        index = output_index(name)
        if known and not any(leaf[: len(index)] == index for leaf in known):
            meant = did_you_mean(name, map(output_name, sorted(known)))
            yield f"no program has the output {name}, which a tolerance was given for{meant}"


def run_options(arguments: argparse.Namespace) -> RunOptions:
    """The options as a record; raises UsageError as `chosen_backends` does."""
    return options_from(arguments, **chosen_backends(arguments))


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


def _replay(
    tasks: Sequence[Task],
    pool: Pool,
    arguments: argparse.Namespace,
    journal: Journal | None,
    notes: list[str],
) -> Batch:
    from hlotool.replay.batch import replay_all
    from hlotool.report.progress import progress_for

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
    rows: Sequence[ModuleRecord],
    end: Ending,
    notes: Sequence[str],
    elapsed: float,
) -> RunRecord:
    from hlotool.report.records import RunRecord, exit_code_of, summary_of, versions

    return RunRecord(
        versions=versions(),
        paths=list(arguments.paths),
        options=options,
        modules=list(rows),
        summary=summary_of(rows),
        notes=list(notes),
        error=end.error,
        interrupted=end.interrupted,
        exit_code=end.exit_code(exit_code_of(rows, fail_on=options.fail_on, exact=options.exact)),
        seconds=elapsed,
    )


def _lonely_problem(record: RunRecord) -> ErrorRecord | None:
    """The error of a single module that could not even be read: one clear line says it all."""
    from hlotool.findings.verdict import Verdict

    if len(record.modules) == 1 and record.modules[0].verdict is Verdict.BAD_INPUT:
        return record.modules[0].error
    return None
