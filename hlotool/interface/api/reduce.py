"""`hlotool.reduce` and `hlotool.extract`: the smallest program that still fails, and a part of a program
by name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import ExitCode, UsageError
from hlotool.interface.api.calls import Accompanied, Ending, ending, options_of
from hlotool.interface.api.results import CutResult
from hlotool.runs.options import parsers
from hlotool.runs.options.declared import Arguments, As, File, Folder, option, takes
from hlotool.runs.options.replaying import Execution
from hlotool.runs.options.shared import (
    Exact,
    Inputs,
    OneProgram,
    OneStage,
    Repetitions,
    Resume,
    Scale,
    Tolerances,
    Unknown,
)

if TYPE_CHECKING:
    from hlotool.blame.reduction.oracle import CaseOracle, Judge
    from hlotool.blame.reduction.reducer import Loaded, Reduction
    from hlotool.interface.report.command_records import ExtractRecord, ReduceRecord
    from hlotool.runs.options.kept import RunOptions
    from hlotool.runs.records import ModuleRecord
    from hlotool.system.cache import Journal


class ReduceResult(CutResult):
    """What is left of a program: `module`, with its `arguments`."""

    record: ReduceRecord

    def __repr__(self) -> str:
        sizes = f"{self.record.instructions_before} → {self.record.instructions_after} instructions"
        return f"<ReduceResult: {sizes}, {self.record.failure or 'no failure'}>"


class _Sides(OneStage):
    backend: str = option("backend that is wrong", default="numpy", metavar="NAME")
    reference: str = option("backend that is right [numpy]", default="numpy", metavar="NAME")
    check: str = option(
        "command that judges a program instead",
        "command that judges a program instead; its exit status means what it means to `git bisect run`",
        default="",
        metavar="CMD",
    )
    fail_regex: str | None = option(
        "what CMD prints when the failure is there", default=None, parse=parsers.regex
    )


class _Failing(_Sides, Exact, Unknown, Scale, Repetitions, group="what fails"):
    repeats: int = option("first runs: does it fail always? [2]", default=2)


class _Result(Arguments, group="result"):
    output: File = option(
        "what is left [NAME.reduced.hlo]",
        "file for what is left, its arguments beside it as .npz; None writes none",
        default=None,
        once=True,
        flags=("--output", "-o"),
    )
    repro: Folder = option(
        "write a repro bundle, too",
        "folder for a bundle that fails on any machine; None writes none",
        default=None,
    )


class ReduceArguments(OneProgram, _Failing, Inputs, Tolerances, _Result, Execution, Resume, Accompanied):
    """What `reduce` takes, and `hlotool reduce`."""


@takes(ReduceArguments)
def reduce(asked: ReduceArguments) -> ReduceResult:
    """Make a failing program small: fewer instructions, shorter loops, smaller shapes, simpler values.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, nothing fails, or what counts as a failure is not given.
        InputError: it is no valid HLO, or the arguments do not fit.
        Unsupported: the reference cannot run it.
    """
    start = time.perf_counter()
    import msgspec

    from hlotool.system.store_access import refuse_url

    if asked.repro is not None:
        refuse_url("--repro", asked.repro)
    search = _Search(asked, options_of(asked))
    journal = search.journal()
    if not asked.resume:
        journal.remove()
    record: ReduceRecord | None = None
    case = None
    with ending(asked.course) as end:
        loaded, found, row, oracle = search.run(journal)
        case = found.case
        record = search.record(loaded, found, row, oracle)
    record = record or search.stopped(end)
    record = msgspec.structs.replace(record, seconds=time.perf_counter() - start)
    if end.interrupted:
        journal.close()
    else:
        asked.course.forget(journal.remove)
    return ReduceResult(record, case)


class _Search:
    """The arguments of `reduce`, and the search itself."""

    def __init__(self, asked: ReduceArguments, options: RunOptions) -> None:
        self._asked = asked
        self._options = options
        self._compiler = ""

    def journal(self) -> Journal:
        """The journal of this reduction; a check that is a script of one's own is part of the question."""
        from hlotool.runs.fleet.contents import command_key
        from hlotool.system.cache import journal_of
        from hlotool.system.files import path_fingerprint

        scripts = [path_fingerprint(Path(word)) for word in self._asked.check.split() if Path(word).is_file()]
        parts = [self._asked.path, self._asked.check, self._asked.stage, *scripts]
        return journal_of("reduce", command_key(parts, self._options))

    def run(self, journal: Journal) -> tuple[Loaded, Reduction, ModuleRecord | None, CaseOracle]:
        """The program, what is left of it, how that fails, and what judged it."""
        from hlotool.blame.reduction.oracle import CaseOracle
        from hlotool.blame.reduction.reducer import load_case, on_inputs_that_show, reduce_loaded
        from hlotool.blame.steps import Steps

        with ExitStack() as stack:
            steps = Steps(journal, stack.enter_context(self._asked.course.searching()))
            loaded = load_case(self._asked.path, self._options, self._asked.stage)
            oracle = CaseOracle(self._judge(stack), steps, self._asked.confidence, self._asked.repeats)
            loaded = on_inputs_that_show(loaded, oracle, self._options)
            found = self._alone(reduce_loaded(loaded, oracle), oracle)
            return loaded, found, oracle.outcome(found.case, "what is left").row, oracle

    def _alone(self, found: Reduction, oracle: CaseOracle) -> Reduction:
        """What was found; a note of it says where it does not fail in a process of its own."""
        if self._asked.check or oracle.rate is not None:
            return found  # A command has its own process; what fails only sometimes is said to.
        from hlotool.blame.reduction.oracle import ONLY_AFTER_OTHERS, failing_afresh
        from hlotool.system.executor import Limits

        options = self._options
        limits = Limits(1, options.timeout, options.memory_limit)
        if failing_afresh(found.case, options, limits, lambda o: str(o.failure) == found.failure):
            return found
        return replace(found, notes=(*found.notes, f"what is left {ONLY_AFTER_OTHERS}"))

    def _judge(self, stack: ExitStack) -> Judge:
        from hlotool.blame.reduction.oracle import BackendJudge, CommandJudge
        from hlotool.system.resources import worker_count

        options = self._options
        width = worker_count(options.jobs, most=2)
        if self._asked.check:
            wanted = re.compile(self._asked.fail_regex) if self._asked.fail_regex else None
            if options.exact:
                raise UsageError("--exact asks what a compiler makes of a program: not together with --check")
            return CommandJudge(self._asked.check, options.timeout, width, wanted)
        if options.backend == options.reference:
            raise UsageError("what fails? say --backend NAME (such as xla) or --check CMD")
        from hlotool.blame.bisection.compiler import asked_compiler
        from hlotool.runs.options.kept import PRELOAD
        from hlotool.system.executor import Limits
        from hlotool.system.pool import Pool

        limits = Limits(width, options.timeout, options.memory_limit)
        pool = stack.enter_context(Pool(limits, PRELOAD, options.backend))
        if self._asked.repro is not None:
            self._compiler = asked_compiler(pool, options.backend).name
        return BackendJudge(pool, options, width)

    def record(
        self,
        loaded: Loaded,
        found: Reduction,
        row: ModuleRecord | None,
        oracle: CaseOracle,
    ) -> ReduceRecord:
        """The record of a reduction that came to its end, with the files that were asked for."""
        from hlotool.blame.reduction.case import with_suffix, write_case
        from hlotool.blame.repro.bundle import write_bundle
        from hlotool.blame.repro.making import bundle_of_case
        from hlotool.interface.report.command_records import ReduceRecord
        from hlotool.interface.report.records import versions

        passing, output, repro = "", self._asked.output, self._asked.repro
        if output is not None:
            write_case(found.case, output)
            if found.passing is not None:
                passing = with_suffix(output, ".passing.hlo")
                write_case(found.passing, passing)
        if repro is not None:
            took_part = {**versions(), **({"backend": self._compiler} if self._compiler else {})}
            bundle = bundle_of_case(found, self._options, self._asked.check, took_part, row)
            write_bundle(bundle, Path(repro))
        return ReduceRecord(
            versions=versions(),
            path=self._asked.path,
            options=self._options,
            check=self._asked.check,
            inputs=loaded.inputs,
            failure=found.failure,
            reason=found.reason,
            failure_rate=oracle.rate.estimate if oracle.rate else None,
            instructions_before=found.before,
            instructions_after=found.case.size,
            program=found.case.text,
            output=output or "",
            passing=passing,
            repro=repro or "",
            programs_judged=oracle.steps.computed + oracle.steps.recalled,
            notes=[*loaded.notes, *found.notes, *filter(None, [oracle.steps.problem])],
            exit_code=ExitCode.MISMATCH,
        )

    def stopped(self, end: Ending) -> ReduceRecord:
        """The record of a reduction that was stopped, by an error or by the user."""
        from hlotool.interface.report.command_records import ReduceRecord
        from hlotool.interface.report.records import versions

        return ReduceRecord(
            versions=versions(),
            path=self._asked.path,
            options=self._options,
            check=self._asked.check,
            error=end.error,
            interrupted=end.interrupted,
            exit_code=end.exit_code(ExitCode.MISMATCH),
        )


class ExtractResult(CutResult):
    """A part of a program as a program of its own: `module`, with its `arguments`."""

    record: ExtractRecord

    def __repr__(self) -> str:
        return f"<ExtractResult: {', '.join(self.record.instructions)}>"


class _Program(OneProgram):
    names: As[str | Sequence[str], tuple[str, ...]] = option(
        "names; or of one computation",
        "of instructions of one computation, or of one computation",
        kw_only=False,
        nargs="+",
        metavar="INSTRUCTION",
        convert=lambda names: (names,) if isinstance(names, str) else tuple(names),
    )


class _Around(OneStage):
    height: int = option("steps back along operands [0]", default=0, parse=parsers.distance)
    call: int = option("iteration of the loop around it [0]", default=0, parse=parsers.distance)


class _Cut(_Around, Unknown, group="what to cut out"):
    output: File = option(
        "the new program [NAME.extracted.hlo]",
        "file for the new program, its arguments beside it as .npz; None writes none",
        default=None,
        once=True,
        flags=("--output", "-o"),
    )


class ExtractArguments(_Program, _Cut, Inputs):
    """What `extract` takes, and `hlotool extract`."""


@takes(ExtractArguments)
def extract(asked: ExtractArguments) -> ExtractResult:
    """Cut instructions, a fusion or a whole computation out of a program into a program of their own.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, or nothing of these names.
        InputError: it is no valid HLO, or the arguments do not fit.
        Unsupported: the program, or the part by itself, cannot be run.
    """
    from hlotool.blame.reduction.case import with_suffix, write_case
    from hlotool.blame.reduction.reducer import load_case
    from hlotool.blame.reduction.subgraph import cut_named
    from hlotool.interface.report.command_records import ExtractRecord

    loaded = load_case(asked.path, options_of(asked), asked.stage, may_be_cut=True)
    cut = cut_named(loaded.case, asked.names, asked.height, asked.call)
    inputs_file = ""
    if asked.output is not None:
        write_case(cut.case, asked.output)
        inputs_file = with_suffix(asked.output, ".npz") if cut.inputs else ""
    ended = loaded.case.module.cut
    record = ExtractRecord(
        path=asked.path,
        instructions=list(asked.names),
        program=cut.case.text,
        parameters=[each.name for each in cut.inputs],
        output=asked.output or "",
        inputs_file=inputs_file,
        inputs=loaded.inputs,
        size=cut.case.size,
        calls=cut.calls,
        notes=[f"{asked.path}: {ended}"] if ended else [],
        exit_code=ExitCode.AGREE,
    )
    return ExtractResult(record, cut.case)
