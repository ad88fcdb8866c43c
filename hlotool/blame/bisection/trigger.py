"""Does a fault show on the compiler at hand? The program to file is the one that does, made small.

Forms of the program are tried one after the other. Most faults come from another compiler than the one at
hand: then few programs are compiled, and it is said that none of them triggers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hlotool.backends.aot.options import platform_of
from hlotool.blame.bisection.compiler import NEEDED, CompilerRecord, asked_compiler, without
from hlotool.blame.bisection.records import CulpritRecord, TriggerRecord, TriggerStatus
from hlotool.blame.bisection.stages import stage_program, stage_trials
from hlotool.blame.reduction.case import Case, case_of
from hlotool.blame.reduction.case_worker import CaseOutcome
from hlotool.blame.reduction.oracle import ONLY_AFTER_OTHERS, BackendJudge, CaseOracle, Judge, failing_afresh
from hlotool.blame.reduction.reducer import bare_case, reduce_case
from hlotool.blame.steps import Steps
from hlotool.errors import BackendFailed, BackendTimeout, HlotoolError, Unsupported
from hlotool.facts.platforms import compiled_for
from hlotool.inputs.captured import read_arguments, read_device_arguments
from hlotool.inputs.given import npz_arrays, npz_bytes
from hlotool.ir.module import Module
from hlotool.ir.partitioning import own_arguments
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import PRELOAD, ReplayOptions, RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.system.executor import Limits
from hlotool.system.pool import Pool

#: Seconds for each program: a compiler that takes longer is not waited for.
_PATIENCE = 60.0

#: Programs that are judged to make one small.
_MOST_JUDGED = 500

#: Runs of a program that fails only sometimes, until one fails.
_MOST_SHOWN = 24

_FLAKY = "its runs differ from each other, on the same arguments"

_AS_GIVEN = "the program as given"
_AROUND = "what stands around the spot"


def try_culprits(
    culprits: list[CulpritRecord],
    tasks: Sequence[Task],
    backend: str,
    options: RunOptions,
    steps: Steps,
    confidence: float = 0.99,
) -> None:
    """Say of each culprit whether its fault shows on the compiler at hand, and make the program small.

    Args:
        culprits: changed in place, one after the other.
        tasks: the modules that they were found in.
        backend: spec of the compiler.
        options: limits of the processes, and how results are compared.
        steps: remember what was asked.
        confidence: of what is said about failures that show only sometimes.
    """
    wanted = [number for number, culprit in enumerate(culprits) if culprit.level != "flaky"]
    if not wanted:
        not_tried(culprits, _FLAKY)
        return
    limits = Limits(1, min(options.timeout, _PATIENCE), options.memory_limit)
    with Pool(limits, PRELOAD, backend) as pool:
        try:
            compiler = asked_compiler(pool, backend)
        except BackendFailed as error:
            compiler = CompilerRecord(error=str(error))
        for number in wanted:
            culprit = culprits[number]
            task = _task_of(culprit, tasks)
            trial = _Trial(culprit, task, backend, compiler, pool, limits, steps, confidence)
            culprits[number] = trial.run()
    not_tried(culprits, _FLAKY)


def not_tried(culprits: list[CulpritRecord], reason: str) -> None:
    """Say of each culprit of which nothing is said why no compiler was asked."""
    record = TriggerRecord.of("not checked", reason=reason)
    for number, culprit in enumerate(culprits):
        if culprit.trigger is None:
            culprits[number] = msgspec.structs.replace(culprit, trigger=record)


def _task_of(culprit: CulpritRecord, tasks: Sequence[Task]) -> Task:
    """The module that a culprit was found in; of several dumps two may have modules of one name."""
    path = culprit.comparison.path if culprit.comparison is not None else ""
    alike = [task for task in tasks if task.module.title == culprit.module]
    exact = [t for t in alike if any(str(stage.source) == path for stage in t.module.stages)]
    return (exact or alike)[0]


@dataclass(frozen=True, slots=True)
class _Form:
    """A program that may show the fault.

    Attributes:
        name: in words.
        case: the program and its arguments.
        wanted: the comparison that shows how it should fail.
        is_whole: its results are those of the module, so that it must be the same ones that are wrong.
    """

    name: str
    case: Case
    wanted: ModuleRecord
    is_whole: bool

    def is_shown_by(self, outcome: CaseOutcome) -> bool:
        """Whether it fails as it should."""
        wanted, row = self.wanted.signature, outcome.row
        if row is None or outcome.failure != wanted.smaller():
            return False
        return not self.is_whole or bool(set(wanted.outputs) & set(row.signature.outputs))


@dataclass(slots=True)
class _Trial:
    """One culprit on the compiler at hand; the arguments of `try_culprits`."""

    culprit: CulpritRecord
    task: Task
    backend: str
    compiler: CompilerRecord
    pool: Pool
    limits: Limits
    steps: Steps
    confidence: float
    judged: int = 0

    def run(self) -> CulpritRecord:
        """The culprit with what the compiler says of it."""
        if self.compiler.error:
            return self._said("not checked", self.compiler.error)
        try:
            if reason := _unfit(self.task, self.backend):
                return self._said("not checked", reason)
            return self._tried()
        except HlotoolError as error:
            return self._said("not checked", str(error))

    def _tried(self) -> CulpritRecord:
        """The first form that triggers, made small; of those that do not, the program as given decides."""
        self.steps.listener.phase(f"does it trigger on {self.compiler.name}?", 1)
        said: tuple[TriggerStatus, str] = "not checked", ""
        for form in _forms(self.culprit, self.task):
            outcome = self._oracle(self._judge(self.backend)).outcome(form.case, form.name)
            self.judged += 1
            if outcome.row is not None and form.is_shown_by(outcome):
                return self._reduced(form, outcome.row)
            is_slow = outcome.failure is not None and outcome.failure.kind == BackendTimeout.__name__
            if is_slow or form.name == _AS_GIVEN:
                said = _unlike(form, outcome)
            if is_slow:
                break
        return self._said(*said)

    def _options(self, backend: str) -> ReplayOptions:
        row = self.culprit.comparison
        is_exact = row is not None and row.verdict is Verdict.UNEQUAL
        given = self.task.options
        return msgspec.structs.replace(given, backend=backend, inputs=None, outputs=None, exact=is_exact)

    def _judge(self, backend: str) -> Judge:
        judge = BackendJudge(self.pool, self._options(backend))
        judge.name = f"{judge.name}, {self.compiler.name}"
        return judge

    def _oracle(self, judge: Judge) -> CaseOracle:
        return CaseOracle(judge, self.steps, self.confidence, most=_MOST_JUDGED)

    def _reduced(self, form: _Form, shown: ModuleRecord) -> CulpritRecord:
        """The culprit with the smallest program found that fails as this form does, shown by a comparison."""
        judge, evidence = self._accusing(form)
        oracle = self._oracle(judge)
        smallest, row = form.case, shown
        try:
            found = reduce_case(form.case, oracle).case
            bare = bare_case(found)
            smallest = bare if oracle.fails(bare, "without source positions") else found
            row = self._shown(oracle, smallest)
        except HlotoolError as error:
            smallest = form.case
            evidence.append(f"no smaller program was found: {error}")
        smallest, row = self._afresh(smallest, row, form, evidence)
        size = smallest.size
        fails = f"a program of {size} instructions fails in the same way on {self.compiler.name}"
        return msgspec.structs.replace(
            self._said("triggers", "", form.name),
            reduced_instructions=size,
            minimal=smallest.text,
            minimal_inputs=npz_bytes(smallest.arguments, smallest.copies) if smallest.arguments else b"",
            minimal_comparison=row,
            evidence=[*self.culprit.evidence, fails, *evidence],
        )

    def _accusing(self, form: _Form) -> tuple[Judge, list[str]]:
        """What judges smaller programs, and what going without the accused pass does to this one."""
        judge, accused = self._judge(self.backend), self.culprit.pass_name
        if not accused or accused in NEEDED:
            return judge, []
        spared = self._judge(without(self.backend, [accused]))
        answer = self._oracle(spared).outcome(form.case, f"without {accused}").answer
        self.judged += 1
        words = f"without {accused} (xla_disable_hlo_passes) its result there is"
        if answer is Answer.GOOD:
            return RightWithout(judge, spared), [f"{words} right"]
        return judge, [f"{words} not right either"] if answer is Answer.BAD else []

    def _afresh(
        self, found: Case, row: ModuleRecord, form: _Form, evidence: list[str]
    ) -> tuple[Case, ModuleRecord]:
        """The smallest program if it fails in a process of its own, too; else the one that it was made of."""
        options = self._options(self.backend)
        for case, is_wanted in ((found, _fails_at_all), (form.case, form.is_shown_by)):
            outcome = failing_afresh(case, options, self.limits, is_wanted)
            if outcome is not None and outcome.row is not None:
                return case, outcome.row
            evidence.append(f"a program of {case.size} instructions {ONLY_AFTER_OTHERS}")
            if case is form.case:
                break
        return found, row

    def _shown(self, oracle: CaseOracle, case: Case) -> ModuleRecord:
        """A comparison in which a program fails: the first, unless it fails only sometimes."""
        for attempt in range(_MOST_SHOWN):
            outcome = oracle.outcome(case, "the smallest", attempt)
            if outcome.answer is Answer.BAD and outcome.row is not None:
                return outcome.row
        raise Unsupported(f"it fails so seldom that {_MOST_SHOWN} runs do not show it")

    def _said(self, status: TriggerStatus, reason: str, form: str = "") -> CulpritRecord:
        record = TriggerRecord.of(
            status,
            self.compiler.name,
            backend=self.backend,
            form=form,
            reason=reason,
            judged=self.judged,
        )
        return msgspec.structs.replace(self.culprit, trigger=record)


def _fails_at_all(outcome: CaseOutcome) -> bool:
    return outcome.answer is Answer.BAD and outcome.row is not None


class RightWithout:
    """Judges by a compiler that is wrong, and right without a pass: no other fault may take the place of it.

    Args:
        judge: runs programs on the compiler.
        spared: runs them on the compiler without the pass.
    """

    def __init__(self, judge: Judge, spared: Judge) -> None:
        self.name = f"{judge.name}, right by {spared.name}"
        self.width = judge.width
        self._judge = judge
        self._spared = spared

    def run(self, cases: Sequence[Case]) -> Iterator[tuple[int, CaseOutcome]]:
        """What each program does; one that is wrong for another reason cannot be judged."""
        # To the end: both judges may ask the same workers.
        for number, outcome in list(self._judge.run(cases)):
            if outcome.answer is Answer.BAD:
                [(_, spared)] = self._spared.run([cases[number]])
                if spared.answer is not Answer.GOOD:
                    reason = "the pass is not the reason"
                    yield number, CaseOutcome(answer=Answer.UNUSABLE, reason=reason)
                    continue
            yield number, outcome


def _unlike(form: _Form, outcome: CaseOutcome) -> tuple[TriggerStatus, str]:
    """What a program does that is not the fault in question; one that ends without a result says nothing."""
    if outcome.answer is Answer.GOOD:
        return "does not trigger", ""
    if outcome.answer is Answer.UNUSABLE or outcome.row is None:
        return "not checked", f"{form.name}: {outcome.reason}"
    return "does not trigger", f"{form.name} fails in another way: {outcome.failure}"


def _unfit(task: Task, backend: str) -> str:
    """Why a module cannot be tried on this compiler; empty where it can."""
    here = platform_of(backend)
    there = _platform(task) or here
    if there != here:
        return f"the dump is of a {there.upper()}, the compiler here is for a {here.upper()}"
    return ""


def _platform(task: Task) -> str | None:
    """What the module was compiled for, by the names of its files or by what its last stage holds."""
    named = next((stage.platform for stage in task.module.stages if stage.platform), "")
    if named:
        return "cpu" if named == "cpu" else "gpu"
    return compiled_for(stage_program(task, len(task.module.stages) - 1).module)


def _forms(culprit: CulpritRecord, task: Task) -> Iterator[_Form]:
    """The programs to try: of a pass the smallest first, of code generation those that users can write."""
    large = list(_large(culprit, task))
    given = large[-1].case.key
    # What is no smaller than the program as given is that program.
    fewer = [form for form in (*_small(culprit), *large[:-1]) if form.case.key != given]
    yield from (*fewer, large[-1]) if culprit.level == "pass" else (large[-1], *reversed(fewer))


def _small(culprit: CulpritRecord) -> Iterator[_Form]:
    """The spot cut out of the program, or the kernel."""
    spot, row = culprit.spot, culprit.comparison
    if spot is None or row is None:
        return
    name, text, inputs = "the kernel alone", spot.after, spot.inputs
    if culprit.level == "pass":
        name, text, row = "the spot", spot.before, spot.comparison or row
        if (around := spot.around) is not None:
            name, text, inputs, row = _AROUND, around.before, around.inputs, around.comparison
    if text:
        module = parse_module(text)
        yield _Form(name, Case(module, _arguments(inputs, module, name)), row, False)


def _arguments(inputs: bytes, module: Module, name: str) -> tuple[Any, ...]:
    """The arguments in the bytes of an .npz file, for each device that has its own."""
    copies = own_arguments(module)
    if not inputs:
        return ((),) * copies if copies > 1 else ()
    if copies > 1:
        return read_device_arguments(npz_arrays(inputs), module, copies, name)
    return read_arguments(npz_arrays(inputs), module, name)


def _large(culprit: CulpritRecord, task: Task) -> Iterator[_Form]:
    """The last stage that is right, and the program as given."""
    row = culprit.comparison
    assert row is not None
    titles = [stage.title for stage in task.module.stages]
    numbers = {titles.index(culprit.stage_before) if culprit.stage_before in titles else 0, 0}
    trials = stage_trials(task)
    trial = trials[0]
    if culprit.level != "pass":
        trial = next((t for t in trials if t.result is not None), trial)
    for number in sorted(numbers, reverse=True):
        program = stage_program(task, number)
        case = case_of(program, trial.arguments)
        # What each device returns is not what all of them return together.
        is_whole = case.copies == program.runner.copies
        yield _Form(titles[number] if number else _AS_GIVEN, case, row, is_whole)
