"""`reduce`: a failing program made small while it fails in the same way."""

from __future__ import annotations

import os
import re
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.api.course import QUIET, Course, Ending, ending
from hlotool.api.options import options_from
from hlotool.api.results import CutResult
from hlotool.api.spool import Program, Values, path_of
from hlotool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hlotool.cache.journal import Journal
    from hlotool.replay.options import RunOptions
    from hlotool.replay.records import ModuleRecord
    from hlotool.report.reduce_records import ReduceRecord
    from hlotool.search.reduction.oracle import CaseOracle, Judge
    from hlotool.search.reduction.reducer import Reduction
    from hlotool.search.reduction.task import Loaded
    from hlotool.search.steps import Listener


class ReduceResult(CutResult):
    """What is left of a program: `module`, with its `arguments`."""

    record: ReduceRecord

    def __repr__(self) -> str:
        sizes = f"{self.record.instructions_before} → {self.record.instructions_after} instructions"
        return f"<ReduceResult: {sizes}, {self.record.failure or 'no failure'}>"


def reduce(
    path: Program,
    *,
    stage: str = "",
    backend: str = "numpy",
    reference: str = "numpy",
    check: str = "",
    fail_regex: str | None = None,
    exact: bool = False,
    elided: str = "refuse",
    opaque: bool = False,
    replicas: int = 0,
    partitions: int = 0,
    scale: str = "auto",
    repeats: int = 2,
    confidence: float = 0.99,
    inputs: Values | None = None,
    seed: int = 0,
    input_range: tuple[float, float] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    output: str | os.PathLike[str] | None = None,
    repro: str | os.PathLike[str] | None = None,
    timeout: float = 300.0,
    jobs: int = 0,
    memory_limit: int | str | None = None,
    resume: bool = True,
    course: Course = QUIET,
) -> ReduceResult:
    """Make a failing program small: fewer instructions, shorter loops, smaller shapes, simpler values.

    Args:
        path: a file of HLO, the dump of one module, or a module.
        stage: of a dump: its label; the first one when empty.
        backend: that is wrong.
        reference: backend that is right.
        check: command that judges a program instead; its exit status means what it means to `git bisect run`.
        fail_regex: what that command prints when the failure is there.
        exact: another function of real numbers is the failure.
        elided: constants that are not in the dump: `refuse`, or `generate` the same values for all programs.
        opaque: private kernels get stand-ins, the same everywhere.
        replicas: of programs that do not say.
        partitions: likewise.
        scale: programs that do not fit run with smaller sizes: `auto`, `never`, sizes by the old ones
            (`4096=7,512=3`), or the memory to fit (`8G`).
        repeats: first runs: does it fail always?
        confidence: about failures that come and go.
        inputs: arguments: a file, `SCRIPT.py:FUNCTION`, or arrays; captured or generated ones when None.
        seed: of generated inputs.
        input_range: lowest and highest value of generated inputs.
        rtol: tolerance relative to the larger magnitude; with `atol`, instead of a judgement.
        atol: absolute tolerance.
        output: file for what is left, its arguments beside it as .npz; None writes none.
        repro: folder for a bundle that fails on any machine; None writes none.
        timeout: seconds per program.
        jobs: processes; 0 for as many as suit the machine.
        memory_limit: bytes per process or text such as `8G`; None for a share of what is free.
        resume: go on where the same call was interrupted.
        course: is told how it goes on.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, nothing fails, or nobody says what a failure is.
        InputError: it is no valid HLO, or the arguments do not fit.
        Unsupported: the reference cannot run it.
    """
    given = dict(locals())
    start = time.perf_counter()
    import msgspec

    from hlotool.stores.access import refuse_url

    folder = None if repro is None else refuse_url("--repro", os.fspath(repro))
    options = options_from(given)
    search = _Search(path_of(path), options, check, fail_regex, stage, course.searching())
    journal = search.journal()
    if not resume:
        journal.remove()
    record: ReduceRecord | None = None
    case = None
    with ending(course) as end:
        loaded, found, row, oracle = search.run(journal, repeats, confidence)
        case = found.case
        record = search.record(loaded, found, row, oracle, output, folder)
    record = record or search.stopped(end)
    record = msgspec.structs.replace(record, seconds=time.perf_counter() - start)
    if end.interrupted:
        journal.close()
    else:
        course.forget(journal.remove)
    return ReduceResult(record, case)


class _Search:
    """The arguments of `reduce`, and the search itself."""

    def __init__(
        self,
        path: str,
        options: RunOptions,
        check: str,
        fail_regex: str | None,
        stage: str,
        listener: Listener,
    ) -> None:
        self._path = path
        self._options = options
        self._check = check
        self._fail_regex = fail_regex
        self._stage = stage
        self._listener = listener

    def journal(self) -> Journal:
        """The journal of this reduction; a check that is a script of one's own is part of the question."""
        from hlotool.cache.fingerprint import path_fingerprint
        from hlotool.cache.journal import journal_of
        from hlotool.replay.keys import command_key

        scripts = [path_fingerprint(Path(word)) for word in self._check.split() if Path(word).is_file()]
        parts = [self._path, self._check, self._stage, *scripts]
        return journal_of("reduce", command_key(parts, self._options))

    def run(
        self, journal: Journal, repeats: int, confidence: float
    ) -> tuple[Loaded, Reduction, ModuleRecord | None, CaseOracle]:
        """The program, what is left of it, how that fails, and what judged it."""
        from hlotool.search.reduction.oracle import CaseOracle
        from hlotool.search.reduction.task import load_case, on_inputs_that_show, reduce_loaded
        from hlotool.search.steps import Steps

        loaded = load_case(self._path, self._options, self._stage)
        steps = Steps(journal, self._listener)
        with ExitStack() as stack:
            oracle = CaseOracle(self._judge(stack), steps, confidence, repeats)
            loaded = on_inputs_that_show(loaded, oracle, self._options)
            found = self._alone(reduce_loaded(loaded, oracle), oracle)
            return loaded, found, oracle.outcome(found.case, "what is left").row, oracle

    def _alone(self, found: Reduction, oracle: CaseOracle) -> Reduction:
        """What was found; a note of it says where it does not fail in a process of its own."""
        if self._check or oracle.rate is not None:
            return found  # A command has its own process; what fails only sometimes is said to.
        from hlotool.search.reduction.afresh import ONLY_AFTER_OTHERS, failing_afresh
        from hlotool.workers.executor import Limits

        options = self._options
        limits = Limits(1, options.timeout, options.memory_limit)
        if failing_afresh(found.case, options, limits, lambda o: str(o.failure) == found.failure):
            return found
        return replace(found, notes=(*found.notes, f"what is left {ONLY_AFTER_OTHERS}"))

    def _judge(self, stack: ExitStack) -> Judge:
        from hlotool.search.reduction.oracle import BackendJudge, CommandJudge
        from hlotool.workers.cores import worker_count

        options = self._options
        width = worker_count(options.jobs, most=2)
        if self._check:
            wanted = re.compile(self._fail_regex) if self._fail_regex else None
            if options.exact:
                raise UsageError("--exact asks what a compiler makes of a program: not together with --check")
            return CommandJudge(self._check, options.timeout, width, wanted)
        if options.backend == options.reference:
            raise UsageError("what fails? say --backend NAME (such as xla) or --check CMD")
        from hlotool.replay.options import PRELOAD
        from hlotool.workers.executor import Limits
        from hlotool.workers.pool import Pool

        limits = Limits(width, options.timeout, options.memory_limit)
        return BackendJudge(stack.enter_context(Pool(limits, PRELOAD, options.backend)), options, width)

    def record(
        self,
        loaded: Loaded,
        found: Reduction,
        row: ModuleRecord | None,
        oracle: CaseOracle,
        output: str | os.PathLike[str] | None,
        repro: str | None,
    ) -> ReduceRecord:
        """The record of a reduction that came to its end, with the files that were asked for."""
        from hlotool.report.records import versions
        from hlotool.report.reduce_records import ReduceRecord
        from hlotool.repro.bundle import write_bundle
        from hlotool.repro.from_case import bundle_of_case
        from hlotool.search.reduction.files import with_suffix, write_case
        from hlotool.stores.masks import taken_in

        passing = ""
        if output is not None:
            output = taken_in(os.fspath(output))
            write_case(found.case, output)
            if found.passing is not None:
                passing = with_suffix(output, ".passing.hlo")
                write_case(found.passing, passing)
        if repro is not None:
            bundle = bundle_of_case(found, self._options, self._check, versions(), row)
            write_bundle(bundle, Path(repro))
        return ReduceRecord(
            versions=versions(),
            path=self._path,
            options=self._options,
            check=self._check,
            inputs=loaded.inputs,
            failure=found.failure,
            reason=found.reason,
            failure_rate=oracle.rate.estimate if oracle.rate else None,
            instructions_before=found.before,
            instructions_after=found.case.size,
            program=found.case.text,
            output="" if output is None else os.fspath(output),
            passing=passing,
            repro="" if repro is None else os.fspath(repro),
            programs_judged=oracle.steps.computed + oracle.steps.recalled,
            notes=[*loaded.notes, *found.notes, *filter(None, [oracle.steps.problem])],
            exit_code=ExitCode.MISMATCH,
        )

    def stopped(self, end: Ending) -> ReduceRecord:
        """The record of a reduction that was stopped, by an error or by the user."""
        from hlotool.report.records import versions
        from hlotool.report.reduce_records import ReduceRecord

        return ReduceRecord(
            versions=versions(),
            path=self._path,
            options=self._options,
            check=self._check,
            error=end.error,
            interrupted=end.interrupted,
            exit_code=end.exit_code(ExitCode.MISMATCH),
        )
