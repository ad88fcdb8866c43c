"""`hlotool reduce`: make a failing program small while it fails in the same way."""

from __future__ import annotations

import argparse
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.cli.options import (
    add_exact_option,
    add_execution_options,
    add_input_options,
    add_output_options,
    add_repetition_options,
    add_tolerance_options,
    add_unknown_options,
    options_from,
    regex,
)
from hlotool.cli.output import Ending, ending, finish
from hlotool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.cache.journal import Journal
    from hlotool.replay.options import RunOptions
    from hlotool.replay.records import ModuleRecord
    from hlotool.report.reduce_records import ReduceRecord
    from hlotool.search.reduction.oracle import CaseOracle, Judge
    from hlotool.search.reduction.reducer import Reduction
    from hlotool.search.reduction.task import Loaded

USAGE = "reduce [options] FILE"
ABOUT = "make a failing program small while it fails in the same way"
DESCRIPTION = """\
Make a failing program small: fewer instructions, inlined calls, shorter loops, smaller shapes, simpler types
and values, fewer devices. The way in which it fails is kept: a wrong value never becomes a crash.

A command given as --check is called with the file of a candidate; the arguments lie beside it as .npz. Its
exit status means what it means to `git bisect run`: 0 good, 125 cannot be judged, others bad.
"""
EXAMPLES = """\
examples:
  hlotool reduce FILE.hlo --backend xla           where XLA and the reference differ
  hlotool reduce FILE.hlo --backend xla --exact   what XLA's passes make another function of
  hlotool reduce FILE.hlo --check ./fails.sh --output small.hlo
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    parser.add_argument("path", metavar="FILE", help="HLO file, or the dump of one module")
    _add_judge_options(parser)
    add_input_options(parser)
    add_tolerance_options(parser)
    group = parser.add_argument_group("result")
    group.add_argument("--output", "-o", metavar="FILE", help="what is left [NAME.reduced.hlo]")
    group.add_argument("--repro", metavar="DIR", help="write a repro bundle, too")
    add_execution_options(parser)
    add_output_options(parser)


def _add_judge_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what fails")
    group.add_argument("--stage", metavar="LABEL", default="", help="of a dump [the first]")
    group.add_argument("--backend", metavar="NAME", default="numpy", help="backend that is wrong")
    group.add_argument("--reference", metavar="NAME", default="numpy", help="backend that is right [numpy]")
    group.add_argument("--check", metavar="CMD", default="", help="command that judges a program instead")
    group.add_argument(
        "--fail-regex", metavar="REGEX", type=regex, help="what CMD prints when the failure is there"
    )
    add_exact_option(group)
    add_unknown_options(group)
    add_repetition_options(group, 2, "first runs: does it fail always?")


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    import msgspec

    options = options_from(arguments, outputs=None)
    journal = _journal(arguments, options)
    if arguments.no_resume:
        journal.remove()
    record: ReduceRecord | None = None
    with ending(arguments) as end:
        record = _reduce(arguments, options, journal)
    record = record or _empty(arguments, options, end)
    record = msgspec.structs.replace(record, seconds=time.perf_counter() - start)

    code = finish(record, arguments)
    # Only when everything is printed nothing is lost any more.
    journal.close() if end.interrupted else journal.remove()
    return code


def _journal(arguments: argparse.Namespace, options: RunOptions) -> Journal:
    """The journal of this reduction; a check that is a script of one's own is part of the question."""
    from hlotool.cache.fingerprint import path_fingerprint
    from hlotool.cache.journal import journal_of
    from hlotool.replay.keys import command_key

    scripts = [path_fingerprint(Path(word)) for word in arguments.check.split() if Path(word).is_file()]
    parts = [arguments.path, arguments.check, arguments.stage, *scripts]
    return journal_of("reduce", command_key(parts, options))


def _reduce(arguments: argparse.Namespace, options: RunOptions, journal: Journal) -> ReduceRecord:
    from hlotool.report.progress import StepLines
    from hlotool.search.reduction.oracle import CaseOracle
    from hlotool.search.reduction.task import load_case, on_inputs_that_show, reduce_loaded
    from hlotool.search.steps import Silent, Steps

    loaded = load_case(arguments.path, options, arguments.stage)
    steps = Steps(journal, Silent() if arguments.quiet else StepLines(sys.stderr))
    with ExitStack() as stack:
        judge = _judge(arguments, options, stack)
        oracle = CaseOracle(judge, steps, arguments.confidence, arguments.repeats)
        loaded = on_inputs_that_show(loaded, oracle, options)
        found = reduce_loaded(loaded, oracle)
        row = oracle.outcome(found.case, "what is left").row
    return _record(arguments, options, loaded, found, row, oracle)


def _judge(arguments: argparse.Namespace, options: RunOptions, stack: ExitStack) -> Judge:
    from hlotool.search.reduction.oracle import BackendJudge, CommandJudge
    from hlotool.workers.cores import worker_count

    width = worker_count(options.jobs, most=2)
    if arguments.check:
        wanted = re.compile(arguments.fail_regex) if arguments.fail_regex else None
        if options.exact:
            raise UsageError("--exact asks what a compiler makes of a program: not together with --check")
        return CommandJudge(arguments.check, options.timeout, width, wanted)
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
    row: ModuleRecord | None,
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
        bundle = bundle_of_case(found, options, arguments.check, versions(), row)
        write_bundle(bundle, Path(arguments.repro))
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


def _empty(arguments: argparse.Namespace, options: RunOptions, end: Ending) -> ReduceRecord:
    """The record of a reduction that was stopped, by an error or by the user."""
    from hlotool.report.records import versions
    from hlotool.report.reduce_records import ReduceRecord

    return ReduceRecord(
        versions=versions(),
        path=arguments.path,
        options=options,
        check=arguments.check,
        error=end.error,
        interrupted=end.interrupted,
        exit_code=end.exit_code(ExitCode.MISMATCH),
    )
