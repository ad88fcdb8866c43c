"""`hlotool bisect`: from a wrong dump to the module, the pass and the instructions to blame."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.cli.options import (
    add_exact_option,
    add_execution_options,
    add_input_options,
    add_only_option,
    add_output_options,
    add_paths,
    add_repetition_options,
    add_tolerance_options,
    add_unknown_options,
    options_from,
)
from hlotool.cli.output import Ending, ending, finish
from hlotool.errors import UsageError

if TYPE_CHECKING:
    from hlotool.cache.journal import Journal
    from hlotool.replay.options import RunOptions
    from hlotool.replay.task import Task
    from hlotool.report.bisect_records import BisectRecord
    from hlotool.search.bisection.directory import Findings
    from hlotool.search.bisection.records import BisectedModule, CulpritRecord
    from hlotool.search.steps import Steps

USAGE = "bisect [options] PATH ..."
ABOUT = "find the module, the pass and the instructions that made a result wrong"
DESCRIPTION = """\
Find what made a program wrong: the module, the compiler pass, the instructions. Every stage of a dump is
run on the same inputs; both ends are checked before anything is searched, and what is found is asked again
before it is accused. Behind the first culprit a second one is looked for.
"""
EXAMPLES = """\
examples:
  hlotool bisect DIR                              a dump with --xla_dump_hlo_pass_re=.*
  hlotool bisect DIR --only train_step            one module
  hlotool bisect FILE.hlo --backend xla           no dump: XLA is here and makes one
  hlotool bisect DIR --inputs in.npz --outputs out.npz
                                                  does the hardware do what the last stage says?
"""


#: Instead of a compiler on which bundles are tried.
_NOBODY = "none"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes to its parser."""
    add_paths(parser)
    group = parser.add_argument_group("what to search")
    add_only_option(group)
    group.add_argument("--every-stage", action="store_true", help="judge all stages: finds repaired faults")
    group.add_argument(
        "--every-module", action="store_true", help="search all modules, not one for each kind of failure"
    )
    group.add_argument("--reference", metavar="NAME", default="numpy", help="backend that runs it [numpy]")
    group.add_argument(
        "--backend", metavar="NAME", default="", help="compile here, such as with xla, and dump its passes"
    )
    add_exact_option(group)
    add_unknown_options(group)
    add_repetition_options(group, 3, "runs of what is compiled here")
    add_input_options(parser)
    add_tolerance_options(parser)
    group = parser.add_argument_group("repro bundles")
    group.add_argument("--repro", metavar="DIR", default="hlotool-repro", help="folder [hlotool-repro]")
    group.add_argument("--no-repro", action="store_true", help="write none")
    group.add_argument(
        "--try-on",
        metavar="NAME",
        default="",
        help="compiler on which they are tried and made small [xla, or --backend]; none: do not",
    )
    add_execution_options(parser)
    add_output_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    from hlotool.cache.journal import journal_of
    from hlotool.replay.keys import command_key
    from hlotool.search.bisection.directory import Findings

    options = options_from(arguments, backend=arguments.backend or arguments.reference)
    journal = journal_of("bisect", command_key(arguments.paths, options))
    if arguments.no_resume:
        _forget(journal)
    findings = Findings()
    notes: list[str] = []
    with ending(arguments) as end:
        _search(arguments, options, journal, findings, notes)
    record = _record(arguments, options, findings, notes, end, start)

    code = finish(record, arguments)
    # Only when everything is printed nothing is lost any more.
    journal.close() if end.interrupted else _forget(journal)
    return code


def _search(
    arguments: argparse.Namespace,
    options: RunOptions,
    journal: Journal,
    findings: Findings,
    notes: list[str],
) -> None:
    from hlotool.backends.registry import get_backend
    from hlotool.check.in_place import unsafe_updates
    from hlotool.replay.options import PRELOAD
    from hlotool.replay.task import find_tasks
    from hlotool.report.progress import StepLines
    from hlotool.search.bisection.compiling import Compiler
    from hlotool.search.bisection.directory import bisect_directory
    from hlotool.search.bisection.stage_oracle import StageOracle
    from hlotool.search.steps import Silent, Steps
    from hlotool.workers.pool import Limits, Pool

    for name in {arguments.backend, arguments.try_on} - {"", _NOBODY}:
        get_backend(name)
    limits = Limits(options.workers, options.timeout, options.memory_limit)
    steps = Steps(journal, Silent() if arguments.quiet else StepLines(sys.stderr))
    with Pool(limits, PRELOAD, options.reference) as pool:
        pool.start()
        oracle = StageOracle(pool, steps)
        tasks = find_tasks(arguments.paths, options, notes)
        try:
            how = arguments.every_stage, arguments.every_module
            if arguments.backend:
                dumps = journal.path.with_suffix(".dumps")
                compiler = Compiler(arguments.backend, dumps, oracle, arguments.repeats)
                compiler.bisect(tasks, findings, *how)
            else:
                bisect_directory(tasks, oracle, findings, *how)
            notes += unsafe_updates([t.module for t in tasks if t.module.title in findings.healthy], pool)
            if arguments.backend or not arguments.no_repro:
                _try(arguments, options, tasks, findings, steps)
        finally:
            findings.comparisons, findings.unusable = oracle.questions, len(oracle.unanswered)
            notes += [*findings.notes, *pool.notes]
            if steps.problem:
                notes.append(steps.problem)


def _try(
    arguments: argparse.Namespace,
    options: RunOptions,
    tasks: list[Task],
    findings: Findings,
    steps: Steps,
) -> None:
    """Whether what the bundles are about to hold triggers on a compiler that is at hand."""
    from hlotool.search.bisection.trigger import not_tried, try_culprits

    if arguments.try_on == _NOBODY:
        not_tried(findings.culprits, "--try-on none")
        return
    backend = arguments.try_on or arguments.backend or "xla"
    try_culprits(findings.culprits, tasks, backend, options, steps, arguments.confidence)


def _record(
    arguments: argparse.Namespace,
    options: RunOptions,
    findings: Findings,
    notes: list[str],
    end: Ending,
    start: float,
) -> BisectRecord:
    from hlotool.report.bisect_records import BisectRecord, bisect_exit_code
    from hlotool.report.records import versions
    from hlotool.search.bisection.trigger import not_tried

    culprits = findings.culprits
    not_tried(culprits, "no bundle was asked for" if arguments.no_repro else "the search ended before that")
    if not arguments.no_repro:
        culprits = [_with_repro(c, n, arguments, options, notes) for n, c in enumerate(culprits, start=1)]
    modules = [_with_culprits(module, culprits) for module in findings.modules]
    return BisectRecord(
        versions=versions(),
        paths=list(arguments.paths),
        options=options,
        culprits=culprits,
        modules=modules,
        healthy=findings.healthy,
        comparisons=findings.comparisons,
        unusable=findings.unusable,
        stages_only=findings.stages_only,
        notes=notes,
        error=end.error,
        interrupted=end.interrupted,
        exit_code=end.exit_code(bisect_exit_code(culprits, modules, findings.healthy)),
        seconds=time.perf_counter() - start,
    )


def _with_repro(
    culprit: CulpritRecord,
    number: int,
    arguments: argparse.Namespace,
    options: RunOptions,
    notes: list[str],
) -> CulpritRecord:
    """The culprit with its bundle on disk; that it cannot be written must not hide what was found."""
    import re

    import msgspec

    from hlotool.report.records import versions
    from hlotool.repro.bundle import write_bundle
    from hlotool.repro.from_culprit import bundle_of

    bundle = bundle_of(culprit, options, versions())
    if bundle is None:
        return culprit
    name = re.sub(r"[^\w.+=-]", "_", culprit.module.rpartition("/")[2])
    folder = Path(arguments.repro, f"{number}.{name}")
    try:
        write_bundle(bundle, folder)
    except UsageError as error:
        notes.append(f"no repro bundle: {error}")
        return culprit
    return msgspec.structs.replace(culprit, repro=str(folder))


def _with_culprits(module: BisectedModule, culprits: list[CulpritRecord]) -> BisectedModule:
    """The module with its culprits as they are now, and with the bundle of the first."""
    import msgspec

    known = [(old.module, old.stage, old.comparison) for old in module.culprits]
    own = [new for new in culprits if (new.module, new.stage, new.comparison) in known]
    bundle = next((culprit.repro for culprit in own if culprit.repro), "")
    return msgspec.structs.replace(module, culprits=own, bundle=bundle)


def _forget(journal: Journal) -> None:
    """Remove the journal and the dumps that were made on the way."""
    import shutil

    journal.remove()
    shutil.rmtree(journal.path.with_suffix(".dumps"), ignore_errors=True)
