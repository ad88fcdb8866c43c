"""`hlotool bisect`: from a wrong dump to the module, the pass and the instructions to blame."""

from __future__ import annotations

import argparse
import sys
import time
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
    from hlotool.report.bisect_records import BisectRecord
    from hlotool.search.bisection.directory import Findings
    from hlotool.search.bisection.records import CulpritRecord
    from hlotool.search.journal import Journal

_DESCRIPTION = """\
Find what made a program wrong: the module, the compiler pass, the instructions. Every stage of a dump is
run on the same inputs; both ends are checked before anything is searched, and what is found is asked again
before it is accused. Behind the first culprit a second one is looked for.
"""

_EXAMPLES = """\
examples:
  hlotool bisect DIR                              a dump with --xla_dump_hlo_pass_re=.*
  hlotool bisect DIR --only train_step            one module
  hlotool bisect FILE.hlo --backend xla           no dump: XLA is here and makes one
  hlotool bisect DIR --inputs in.npz --outputs out.npz
                                                  does the hardware do what the last stage says?
"""


def add_parser(commands: Any, formatter: type[argparse.HelpFormatter]) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "bisect",
        help="find the module, the pass and the instructions that made a result wrong",
        description=_DESCRIPTION,
        epilog=f"{_EXAMPLES}\n{exit_code_text()}",
        formatter_class=formatter,
        usage="hlotool bisect [options] PATH ...",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="dump directory, HLO file, archive or log")
    group = parser.add_argument_group("what to search")
    group.add_argument("--only", metavar="REGEX", type=regex, help="modules whose name matches")
    group.add_argument("--every-stage", action="store_true", help="judge all stages: finds repaired faults")
    group.add_argument(
        "--every-module", action="store_true", help="search all modules, not one for each kind of failure"
    )
    group.add_argument("--reference", metavar="NAME", default="numpy", help="backend that runs it [numpy]")
    group.add_argument(
        "--backend", metavar="NAME", default="", help="compile here, such as with xla, and dump its passes"
    )
    group.add_argument(
        "--repeats", metavar="N", type=count, default=3, help="runs of what is compiled here [3]"
    )
    group.add_argument(
        "--confidence", metavar="P", type=confidence, default=0.99, help="about flaky failures [0.99]"
    )
    add_input_options(parser)
    group = parser.add_argument_group("tolerance", "derived per output from its type and its sums, unless")
    group.add_argument("--rtol", type=tolerance, help="relative to the larger magnitude")
    group.add_argument("--atol", type=tolerance, help="absolute")
    group = parser.add_argument_group("repro bundles")
    group.add_argument("--repro", metavar="DIR", default="hlotool-repro", help="folder [hlotool-repro]")
    group.add_argument("--no-repro", action="store_true", help="write none")
    add_execution_options(parser)
    add_output_options(parser)
    parser.set_defaults(command=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    start = time.perf_counter()
    from hlotool.search.bisection.directory import Findings
    from hlotool.search.journal import Journal

    options = _options(arguments)
    journal = Journal(_journal_path(arguments, options))
    if arguments.no_resume:
        _forget(journal)
    findings = Findings()
    notes: list[str] = []
    error: HlotoolError | None = None
    interrupted = False
    try:
        _search(arguments, options, journal, findings, notes)
    except HlotoolError as problem:
        if not arguments.json:
            raise
        error = problem
    except KeyboardInterrupt:
        interrupted = True
    record = _record(arguments, options, findings, notes, error, interrupted)
    return _show(_timed(record, start), arguments, journal)


def _options(arguments: argparse.Namespace) -> RunOptions:
    from hlotool.replay.options import RunOptions

    return RunOptions(
        reference=arguments.reference,
        backend=arguments.backend or arguments.reference,
        inputs=arguments.inputs,
        outputs=arguments.outputs,
        seed=arguments.seed,
        input_range=arguments.input_range,
        rtol=arguments.rtol,
        atol=arguments.atol,
        timeout=arguments.timeout,
        memory_limit=arguments.memory_limit,
        jobs=arguments.jobs,
        only=arguments.only.pattern if arguments.only else None,
    )


def _journal_path(arguments: argparse.Namespace, options: RunOptions) -> Path:
    from hlotool.backends.cache import cache_folder
    from hlotool.replay.batch import command_key

    return cache_folder() / "journals" / f"bisect-{command_key(arguments.paths, options)}.jsonl"


def _search(
    arguments: argparse.Namespace,
    options: RunOptions,
    journal: Journal,
    findings: Findings,
    notes: list[str],
) -> None:
    from hlotool.backends.registry import get_backend
    from hlotool.cli.run import find_tasks
    from hlotool.replay.options import PRELOAD
    from hlotool.report.bisect_progress import StepLines
    from hlotool.search.bisection.compiling import Compiler
    from hlotool.search.bisection.directory import bisect_directory
    from hlotool.search.bisection.stage_oracle import StageOracle
    from hlotool.search.steps import Silent, Steps
    from hlotool.workers.pool import Limits, Pool

    if arguments.backend:
        get_backend(arguments.backend)
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
                compiler = Compiler(
                    arguments.backend, dumps, oracle, pool, arguments.repeats, arguments.confidence
                )
                compiler.bisect(tasks, findings, *how)
            else:
                bisect_directory(tasks, oracle, findings, *how)
        finally:
            findings.comparisons, findings.unusable = oracle.questions, len(oracle.unanswered)
            notes += pool.notes
            if steps.problem:
                notes.append(steps.problem)


def _record(
    arguments: argparse.Namespace,
    options: RunOptions,
    findings: Findings,
    notes: list[str],
    error: HlotoolError | None,
    interrupted: bool,
) -> BisectRecord:
    from hlotool.findings.errors import error_record
    from hlotool.report.bisect_records import BisectRecord, bisect_exit_code
    from hlotool.report.records import versions

    culprits = findings.culprits
    if not arguments.no_repro:
        culprits = [_with_repro(c, n, arguments, options, notes) for n, c in enumerate(culprits, start=1)]
    code = bisect_exit_code(culprits, findings.modules, findings.healthy)
    if error is not None:
        code = error.exit_code
    return BisectRecord(
        versions=versions(),
        paths=list(arguments.paths),
        options=options,
        culprits=culprits,
        modules=findings.modules,
        healthy=findings.healthy,
        comparisons=findings.comparisons,
        unusable=findings.unusable,
        notes=notes,
        error=error_record(error) if error else None,
        interrupted=interrupted,
        exit_code=ExitCode.INTERRUPTED if interrupted else code,
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


def _timed(record: BisectRecord, start: float) -> BisectRecord:
    import msgspec

    return msgspec.structs.replace(record, seconds=time.perf_counter() - start)


def _show(record: BisectRecord, arguments: argparse.Namespace, journal: Journal) -> int:
    """Print the record; only then are the finished steps forgotten."""
    from hlotool.cli.output import emit, emit_bytes

    if arguments.json:
        import msgspec

        emit_bytes(msgspec.json.encode(record) + b"\n")
    else:
        from hlotool.report.bisect import BisectReport
        from hlotool.report.console import console_for, render

        for note in record.notes:
            print(f"hlotool: note: {note}", file=sys.stderr)
        report = BisectReport(record, quiet=arguments.quiet, verbose=arguments.verbose)
        emit(render(console_for(sys.stdout), report))
    if record.interrupted:
        journal.close()
    else:
        _forget(journal)
    return record.exit_code


def _forget(journal: Journal) -> None:
    """Remove the journal and the dumps that were made on the way."""
    import shutil

    journal.remove()
    shutil.rmtree(journal.path.with_suffix(".dumps"), ignore_errors=True)
