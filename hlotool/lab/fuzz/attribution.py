"""Which pass, or which code of the compiler, is to blame for a small failing program; its bundle."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from hlotool.backends.registry import BackendSpec, parse_spec
from hlotool.blame.bisection.compiler import (
    COMPILE_FUNCTION,
    NEEDED,
    LiveQuestion,
    passes_that_changed,
    without,
)
from hlotool.blame.bisection.directory import Compiler, Findings, bisect_directory
from hlotool.blame.bisection.records import CulpritRecord
from hlotool.blame.bisection.stages import StageOracle
from hlotool.blame.reduction.case import Case, write_case
from hlotool.blame.reduction.case_worker import FUNCTION, CaseOutcome, CaseQuestion
from hlotool.blame.reduction.oracle import Judge
from hlotool.blame.reduction.reducer import Reduction, load_case
from hlotool.blame.repro.bundle import Bundle
from hlotool.blame.repro.making import bundle_of, bundle_of_case
from hlotool.blame.steps import Steps
from hlotool.errors import HlotoolError
from hlotool.interface.report.lab_records import FaultRecord
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import Answer
from hlotool.runs.options.kept import PRELOAD, RunOptions
from hlotool.runs.task import Task, find_tasks
from hlotool.sources.directory import open_dump
from hlotool.system.executor import Limits
from hlotool.system.files import brief_folder
from hlotool.system.pool import Pool


class OutOfTime(Exception):
    """A stage has had its time."""


class LimitedJudge:
    """A judge that answers until its time is over; afterwards no program fails any more.

    A reduction then keeps the smallest program that did fail.

    Args:
        judge: that is asked.
        seconds: from now.

    Attributes:
        name: as for `Judge`.
        width: likewise.
        is_over: a program was not judged for want of time.
    """

    def __init__(self, judge: Judge, seconds: float) -> None:
        self.name = judge.name
        self.width = judge.width
        self.is_over = False
        self._judge = judge
        self._end = time.monotonic() + seconds

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[int, CaseOutcome]]:
        """What each program does, in any order."""
        if time.monotonic() < self._end:
            yield from self._judge.run(cases)
            return
        self.is_over = True
        for index in range(len(cases)):
            yield index, CaseOutcome(answer=Answer.UNUSABLE, reason="no time is left")


class Deadline:
    """Listens to the steps of a search and ends it with OutOfTime when its time is over.

    Args:
        seconds: from now.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def step(self, text: str, verdict: str, seconds: float, again: bool) -> None:
        """A step is done; raises OutOfTime after the last one that there is time for."""
        self._look()

    def phase(self, text: str, steps: int | None = None) -> None:
        """A new part of the search begins; raises OutOfTime as `step` does."""
        self._look()

    def left(self, points: int) -> None:
        """Part of a history is open; raises OutOfTime as `step` does."""
        self._look()

    def _look(self) -> None:
        if time.monotonic() > self._end:
            raise OutOfTime


#: Passes that are switched off, one at a time, for a compiler that dies: each time costs a new process.
_MOST_SWITCHED = 30
#: Compilations of a program that is wrong, until one of them shows it: a compiler that reads memory which
#: was never written is right in a fresh process, and wrong in the next compilation there.
_COMPILATIONS = 4
#: Other set-ups of XLA that are tried before: what they leave out, as a level of blame and in words.
_ELSEWHERE = (
    ("route", "pre", "import", "the import of StableHLO"),
    ("opt", "0", "codegen", "the optimisation of the code"),
)


@dataclass(slots=True)
class Blame:
    """Who did it, as far as that is known.

    Attributes:
        culprit: of a bisection; None where none was found.
        level: `pass`, `codegen`, `runtime-library`, `import`; empty where that is not known.
        pass_name: accused; empty where none is.
        evidence: why, one line each.
        problems: why it is not known.
        passes: that changed the program.
        place: how far a compiler came that died.
    """

    culprit: CulpritRecord | None = None
    level: str = ""
    pass_name: str = ""
    evidence: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    passes: list[str] = field(default_factory=list)
    place: str = ""


def blame_wrong(
    program: Path,
    inputs: Path | None,
    options: RunOptions,
    seconds: float,
    switches_off: bool = True,
    compilations: int = _COMPILATIONS,
) -> Blame:
    """Bisect the passes of a compiler that gives a wrong result.

    Args:
        program: file of HLO.
        inputs: file of its arguments; None where it has none.
        options: reference, backend and limits.
        seconds: after which what was found until then has to do.
        switches_off: ask, too, what becomes of the result without some passes.
        compilations: until one shows the fault; of a single one nothing is concluded where it shows none.
    """
    own = msgspec.structs.replace(options, inputs=None if inputs is None else str(inputs))
    findings, blame = Findings(), Blame()
    limits = Limits(1, own.timeout, own.memory_limit)
    dumps = program.with_suffix(".dumps")
    deadline = Deadline(seconds)
    try:
        with Pool(limits, PRELOAD, own.reference) as pool:
            reading = msgspec.structs.replace(own, backend=own.reference)
            tasks = find_tasks([str(program)], reading, blame.problems)
            for number in range(compilations):
                findings = Findings()
                oracle = StageOracle(pool, Steps(None, deadline))
                compiler = Compiler(own.backend, dumps / str(number), oracle, switches_off=switches_off)
                compiler.bisect(tasks, findings)
                if findings.culprits or not findings.healthy:
                    break
    except OutOfTime:
        blame.problems.append(f"bisection: not done after {seconds:.0f} s")
    except HlotoolError as error:
        blame.problems.append(f"bisection: {error}")
    if findings.healthy and not findings.culprits:
        if compilations > 1:
            _blame_other_set_ups(blame, program, inputs, options)
        if not blame.level:
            blame.problems.append("bisection: every stage and the result agree")
    else:
        _accuse(blame, findings)
    blame.passes = list(_passes_in(dumps))
    shutil.rmtree(dumps, ignore_errors=True)
    return blame


def _accuse(blame: Blame, findings: Findings) -> None:
    """Blame the first culprit of a bisection, or say why there is none."""
    for culprit in findings.culprits[:1]:
        blame.culprit = culprit
        blame.level, blame.pass_name = culprit.level, culprit.pass_name
        blame.evidence += culprit.evidence
    if not findings.culprits:
        blame.problems += [f"bisection: {module.reason}" for module in findings.modules if module.reason]


def blame_dump(task: Task, seconds: float) -> Blame:
    """Bisect the stages of a dump that is wrong; no compiler is asked.

    Args:
        task: the module, with its options.
        seconds: after which what was found until then has to do.
    """
    options = task.options
    assert isinstance(options, RunOptions)
    findings, blame = Findings(), Blame()
    try:
        with Pool(Limits(1, options.timeout, options.memory_limit), PRELOAD, options.reference) as pool:
            bisect_directory([task], StageOracle(pool, Steps(None, Deadline(seconds))), findings)
    except OutOfTime:
        blame.problems.append(f"bisection: not done after {seconds:.0f} s")
    except HlotoolError as error:
        blame.problems.append(f"bisection: {error}")
    _accuse(blame, findings)
    return blame


def _blame_other_set_ups(blame: Blame, program: Path, inputs: Path | None, options: RunOptions) -> None:
    """Blame what is before the first dump or after the last one, if without it the result is right."""
    case = load_case(str(program), msgspec.structs.replace(options, inputs=inputs and str(inputs))).case
    with Pool(Limits(1, options.timeout, options.memory_limit), PRELOAD, options.backend) as pool:
        if not _always(Answer.BAD, pool, case, options, options.backend):
            blame.problems.append("compiled again and again, it is not always wrong")
            return
        for spec, level, what in _set_ups(options.backend):
            if _always(Answer.GOOD, pool, case, options, spec):
                blame.level = level
                blame.evidence.append(f"without {what} ({spec}) the result is right")
                return


def _always(answer: Answer, pool: Pool, case: Case, options: RunOptions, backend: str) -> bool:
    """Whether each of several compilations of a program does what is said."""
    outcomes = (_outcome(pool, case, options, backend) for _ in range(_COMPILATIONS))
    return all(outcome is not None and outcome.answer is answer for outcome in outcomes)


def blame_death(
    case: Case,
    failure: Signature,
    options: RunOptions,
    reached: Iterable[str],
    seconds: float,
    switches_off: bool = True,
) -> Blame:
    """The part of a compiler without which it does not die, or hang: its import, its code, or single passes.

    Args:
        case: the program and its arguments.
        failure: how it dies.
        options: reference, backend and limits.
        reached: passes that changed programs of the campaign: what a pass did before it died leaves no dump.
        seconds: after which what was found until then has to do.
        switches_off: try it without single passes; otherwise the dump says how far it came.
    """
    blame = Blame()
    deadline = Deadline(seconds)
    candidates = dict.fromkeys([*_named_by(options.backend), *reached])
    names = [name for name in candidates if name not in NEEDED][:_MOST_SWITCHED]
    found: list[str] = []
    try:
        with Pool(Limits(1, options.timeout, options.memory_limit), PRELOAD, options.backend) as pool:
            if not switches_off:
                blame.place = _place_of_death(pool, case, options)
            for spec, level, what in _set_ups(options.backend):
                deadline.phase(what)
                if _survives(pool, case, options, spec):
                    blame.level = level
                    blame.evidence.append(f"without {what} ({spec}) the compiler survives")
                    return blame
            if not switches_off:
                return blame
            for name in names:
                deadline.phase(name)
                if _survives(pool, case, options, without(options.backend, [name])):
                    found.append(name)
    except OutOfTime:
        blame.problems.append(f"switching passes off: not done after {seconds:.0f} s")
    except HlotoolError as error:
        blame.problems.append(f"blaming a death: {error}")
    if found:
        blame.level, blame.pass_name = "pass", found[0]
        blame.evidence += [f"without {name} (xla_disable_hlo_passes) the compiler survives" for name in found]
    elif not blame.problems:
        blame.problems.append(f"no pass of {len(names)} keeps the compiler alive by its absence: {failure}")
    return blame


def _place_of_death(pool: Pool, case: Case, options: RunOptions) -> str:
    """How far the compiler came, by the files that it left; empty where it left none of that kind."""
    with brief_folder() as folder:
        program = folder / "program.hlo"
        write_case(case, str(program))
        [task] = find_tasks([str(program)], msgspec.structs.replace(options, backend=options.reference), [])
        pool.call_all(COMPILE_FUNCTION, [LiveQuestion(task, options.backend, str(folder / "dump"), 1)])
        try:
            modules = open_dump(folder / "dump").modules
        except HlotoolError:
            return ""
        return next((module.unfinished for module in modules if module.unfinished), "")


def _set_ups(backend: str) -> Iterator[tuple[str, str, str]]:
    """The backend without a part of its compiler: its spec, the part as a level of blame, and in words."""
    spec = parse_spec(backend)
    for key, value, level, what in _ELSEWHERE if spec.name == "xla" else ():
        if key not in spec.options:
            yield str(BackendSpec(spec.name, {**spec.options, key: value})), level, what


def _named_by(backend: str) -> list[str]:
    """Passes that the spec of a backend names itself, as `opt:passes=A+B` does."""
    return re.findall(r"[A-Za-z][\w-]*", parse_spec(backend).options.get("passes", ""))


def _survives(pool: Pool, case: Case, options: RunOptions, backend: str) -> bool:
    """Whether a program gets a result, right or wrong, from a backend."""
    outcome = _outcome(pool, case, options, backend)
    return outcome is not None and (outcome.answer is Answer.GOOD or outcome.row is not None)


def _outcome(pool: Pool, case: Case, options: RunOptions, backend: str) -> CaseOutcome | None:
    """How a program does on a backend; None where that took the worker with it."""
    own = msgspec.structs.replace(options, backend=backend)
    [end] = pool.call_all(FUNCTION, [CaseQuestion(case.text, case.arguments, own)])
    return msgspec.msgpack.decode(end.value, type=CaseOutcome) if isinstance(end.value, bytes) else None


def _passes_in(root: Path) -> Iterator[str]:
    """The passes that left something in the dumps of all compilations below a folder."""
    for folder in sorted(root.glob("*/*")) if root.is_dir() else ():
        try:
            dump = open_dump(folder)
        except HlotoolError:
            continue  # the compiler died before it wrote anything
        for module in dump.modules:
            yield from passes_that_changed(module)


def fault_bundle(
    fault: FaultRecord,
    case: Case,
    reduction: Reduction | None,
    blame: Blame,
    last: CaseOutcome,
    options: RunOptions,
    versions: Mapping[str, str],
) -> Bundle:
    """The bundle of a fault.

    Args:
        fault: as far as it is described.
        case: the smallest program.
        reduction: that it comes from; None where it is the program that failed first.
        blame: who did it.
        last: how the smallest program fails.
        options: reference and backend.
        versions: of everything that took part.
    """
    found = reduction or Reduction(case, fault.before, str(last.failure), last.reason, None)
    bundle = bundle_of_case(found, options, "", versions, last.row)
    title = fault.title if blame.level else bundle.title
    bundle = replace(
        bundle,
        title=title,
        culprit={"level": blame.level, "pass": blame.pass_name} if blame.level else {},
        evidence=(*bundle.evidence, "it failed twice, the second time in a fresh process", *blame.evidence),
    )
    pair = bundle_of(blame.culprit, options, versions) if blame.culprit is not None else None
    if pair is None:
        return bundle
    bundle = replace(bundle, culprit=pair.culprit)
    if pair.kind != "stages":
        return replace(bundle, kernel=pair.kernel, kernel_inputs=pair.kernel_inputs)
    return replace(bundle, pass_before=pair.program, pass_after=pair.after, pass_inputs=pair.inputs)
