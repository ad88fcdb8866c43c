"""`hlotool reduce`: make a failing program small while it fails in the same way."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotool.cli.options import (
    add_execution_options,
    add_input_options,
    add_output_options,
    confidence,
    count,
    exit_code_text,
    regex,
    tolerance,
)
from hlotool.errors import ExitCode, HlotoolError, UsageError

if TYPE_CHECKING:
    from hlotool.replay.options import RunOptions
    from hlotool.report.reduce_records import ReduceRecord
    from hlotool.search.journal import Journal
    from hlotool.search.reduction.oracle import CaseOracle, Judge
    from hlotool.search.reduction.reducer import Reduction
    from hlotool.search.reduction.task import Loaded

_DESCRIPTION = """\
Make a failing program small: fewer instructions, inlined calls, shorter loops, smaller shapes, simpler types
and values. The way in which it fails is kept: a wrong value never becomes a crash.

A command given as --check is called with the file of a candidate; the arguments lie beside it as .npz. Its
exit status means what it means to `git bisect run`: 0 good, 125 cannot be judged, others bad.
"""

_EXAMPLES = """\
examples:
  hlotool reduce FILE.hlo --backend xla           where XLA and the reference differ
  hlotool reduce FILE.hlo --check ./fails.sh --output small.hlo
"""


def add_parser(commands: Any, formatter: type[argparse.HelpFormatter]) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "reduce",
        help="make a failing program small while it fails in the same way",
        description=_DESCRIPTION,
        epilog=f"{_EXAMPLES}\n{exit_code_text()}",
        formatter_class=formatter,
        usage="hlotool reduce [options] FILE",
    )
    parser.add_argument("path", metavar="FILE", help="HLO file, or the dump of one module")
    _add_judge_options(parser)
    add_input_options(parser)
    group = parser.add_argument_group("tolerance", "derived per output from its type and its sums, unless")
    group.add_argument("--rtol", type=tolerance, help="relative to the larger magnitude")
    group.add_argument("--atol", type=tolerance, help="absolute")
    group = parser.add_argument_group("result")
    group.add_argument("--output", "-o", metavar="FILE", help="what is left [NAME.reduced.hlo]")
    group.add_argument("--repro", metavar="DIR", help="write a repro bundle, too")
    add_execution_options(parser)
    add_output_options(parser)
    parser.set_defaults(command=execute)


def _add_judge_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what fails")
    group.add_argument("--stage", metavar="LABEL", default="", help="of a dump [the first]")
    group.add_argument("--backend", metavar="NAME", default="numpy", help="backend that is wrong")
    group.add_argument("--reference", metavar="NAME", default="numpy", help="backend that is right [numpy]")
    group.add_argument("--check", metavar="CMD", default="", help="command that judges a program instead")
    group.add_argument(
        "--fail-regex", metavar="REGEX", type=regex, help="what CMD prints when the failure is there"
    )
    group.add_argument(
        "--repeats", metavar="N", type=count, default=2, help="first runs: does it fail always? [2]"
    )
    group.add_argument(
        "--confidence", metavar="P", type=confidence, default=0.99, help="about flaky failures [0.99]"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    from hlotool.search.journal import Journal

    options = _options(arguments)
    journal = Journal(_journal_path(arguments, options))
    if arguments.no_resume:
        journal.remove()
    try:
        record = _reduce(arguments, options, journal)
    except HlotoolError as problem:
        if not arguments.json:
            raise
        record = _empty(arguments, options, problem)
    except KeyboardInterrupt:
        record = _empty(arguments, options, None)
    return _show(record, arguments, journal, time.perf_counter() - start)


def _options(arguments: argparse.Namespace) -> RunOptions:
    from hlotool.replay.options import RunOptions

    return RunOptions(
        reference=arguments.reference,
        backend=arguments.backend,
        inputs=arguments.inputs,
        outputs=None,
        seed=arguments.seed,
        input_range=arguments.input_range,
        rtol=arguments.rtol,
        atol=arguments.atol,
        timeout=arguments.timeout,
        memory_limit=arguments.memory_limit,
        jobs=arguments.jobs,
    )


def _journal_path(arguments: argparse.Namespace, options: RunOptions) -> Path:
    from hlotool.backends.cache import cache_folder
    from hlotool.replay.batch import command_key

    paths = [arguments.path, arguments.check, arguments.stage]
    return cache_folder() / "journals" / f"reduce-{command_key(paths, options)}.jsonl"


def _reduce(arguments: argparse.Namespace, options: RunOptions, journal: Journal) -> ReduceRecord:
    from hlotool.report.bisect_progress import StepLines
    from hlotool.search.reduction.oracle import CaseOracle
    from hlotool.search.reduction.task import load_case, reduce_loaded
    from hlotool.search.steps import Silent, Steps

    loaded = load_case(arguments.path, options, arguments.stage)
    steps = Steps(journal, Silent() if arguments.quiet else StepLines(sys.stderr))
    with ExitStack() as stack:
        judge = _judge(arguments, options, stack)
        oracle = CaseOracle(judge, steps, arguments.confidence, arguments.repeats)
        found = reduce_loaded(loaded, oracle)
    return _record(arguments, options, loaded, found, oracle)


def _judge(arguments: argparse.Namespace, options: RunOptions, stack: ExitStack) -> Judge:
    from hlotool.search.reduction.oracle import BackendJudge, CommandJudge
    from hlotool.workers.cores import worker_count

    width = worker_count(options.jobs, most=2)
    if arguments.check:
        return CommandJudge(arguments.check, options.timeout, width, arguments.fail_regex)
    if options.backend == options.reference:
        raise UsageError("what fails? say --backend NAME (such as xla) or --check CMD")
    from hlotool.replay.options import PRELOAD
    from hlotool.workers.pool import Limits, Pool

    limits = Limits(width, options.timeout, options.memory_limit)
    return BackendJudge(stack.enter_context(Pool(limits, PRELOAD, options.backend)), options, width)


def _record(
    arguments: argparse.Namespace,
    options: RunOptions,
    loaded: Loaded,
    found: Reduction,
    oracle: CaseOracle,
) -> ReduceRecord:
    from hlotool.report.records import versions
    from hlotool.report.reduce_records import ReduceRecord
    from hlotool.repro.bundle import write_bundle
    from hlotool.repro.from_case import bundle_of_case
    from hlotool.search.reduction.files import default_output, write_case

    output = Path(arguments.output or default_output(arguments.path))
    write_case(found.case, output)
    passing = output.with_suffix(".passing.hlo")
    if found.passing is not None:
        write_case(found.passing, passing)
    if arguments.repro:
        write_bundle(bundle_of_case(found, options, arguments.check, versions()), Path(arguments.repro))
    return ReduceRecord(
        versions=versions(),
        path=arguments.path,
        options=options,
        check=arguments.check,
        inputs=loaded.inputs,
        failure=found.failure,
        reason=found.reason,
        failure_rate=oracle.rate.estimate if oracle.rate else None,
        instructions_before=found.before,
        instructions_after=found.case.size,
        program=found.case.text,
        output=str(output),
        passing=str(passing) if found.passing is not None else "",
        repro=arguments.repro or "",
        programs_judged=oracle.steps.computed + oracle.steps.recalled,
        notes=[*found.notes, *filter(None, [oracle.steps.problem])],
        exit_code=ExitCode.MISMATCH,
    )


def _empty(arguments: argparse.Namespace, options: RunOptions, problem: HlotoolError | None) -> ReduceRecord:
    """The record of a reduction that was stopped, by an error or by the user."""
    from hlotool.findings.errors import error_record
    from hlotool.report.records import versions
    from hlotool.report.reduce_records import ReduceRecord

    return ReduceRecord(
        versions=versions(),
        path=arguments.path,
        options=options,
        check=arguments.check,
        error=error_record(problem) if problem else None,
        interrupted=problem is None,
        exit_code=problem.exit_code if problem else ExitCode.INTERRUPTED,
    )


def _show(record: ReduceRecord, arguments: argparse.Namespace, journal: Journal, elapsed: float) -> int:
    """Print the record; only then are the finished steps forgotten."""
    import msgspec

    from hlotool.cli.output import emit, emit_bytes

    record = msgspec.structs.replace(record, seconds=elapsed)
    if arguments.json:
        emit_bytes(msgspec.json.encode(record) + b"\n")
    else:
        from hlotool.report.console import console_for, render
        from hlotool.report.reduce import ReduceReport

        for note in record.notes:
            print(f"hlotool: note: {note}", file=sys.stderr)
        emit(render(console_for(sys.stdout), ReduceReport(record, arguments.verbose)))
    journal.close() if record.interrupted else journal.remove()
    return record.exit_code
