"""Mutants of one program: drawn in a worker process, and killed, proved equivalent, or not noticed."""

from __future__ import annotations

import enum
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from hlotool.backends.base import Value
from hlotool.blame.reduction.case_worker import compare_programs, compare_results
from hlotool.errors import BackendFailed, EndlessLoop, HlotoolError, Unsupported
from hlotool.facts.dataflow import source_of
from hlotool.inputs.adversarial.plan import directed_sets
from hlotool.inputs.adversarial.sets import PLAIN, InputSet
from hlotool.interface.report.lab_records import MutantRecord, MutatedRecord
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.lab.faults import family_of
from hlotool.lab.faults.edit import find
from hlotool.lab.mutation.equivalence import Mutant, draw, same_of_reals, same_to_the_bit
from hlotool.runs.leaves import same_bits
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.other_inputs import allowed_for_sets, in_budget
from hlotool.runs.program import Program, compile_program, load_program
from hlotool.runs.records import GENERATED
from hlotool.runs.runners import OneDevice
from hlotool.runs.scaling import fitting
from hlotool.runs.task import Task
from hlotool.runs.trials import Trial, trials
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.resources import TooSlow, time_limit, work_done

#: Sets that a mutant runs on before a proof that none can show it is tried.
_BEFORE_PROOFS = 12
#: Seconds that the judge may take for one comparison: there are many.
_JUDGING = "5"


class Fate(enum.Enum):
    """What is known of a mutant."""

    #: A set of inputs shows it: the verdict is `wrong`.
    KILLED = "killed"
    #: No inputs can show it.
    EQUIVALENT = "equivalent"
    #: Nothing shows it, and nothing proves that nothing can.
    SURVIVED = "survived"
    #: It cannot be executed, or not on any set.
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True)
class Found:
    """The fate of a mutant, and what it rests on.

    Attributes:
        fate: of the mutant.
        by: the set that kills it, the proof of equivalence, or the best verdict that was excused.
        number: of the set that kills it, among those of the examiner.
    """

    fate: Fate
    by: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A run of a mutant that has not ended.

    Attributes:
        number: of the set.
        name: likewise.
        began: in `time.perf_counter`.
    """

    number: int
    name: str
    began: float

    @property
    def seconds(self) -> float:
        """That it has taken so far."""
        return time.perf_counter() - self.began


class Examiner:
    """Runs mutants of one program on sets of inputs.

    Args:
        reference: the program as it should be, which judges; before optimisation, say.
        sets: of its inputs, the plain one first; those on which it cannot run are passed over.
        limit: seconds after which no further sets are taken.

    Raises:
        TooSlow: it does not run on any set in this time.

    Attributes:
        seconds: that the program took on all sets.
        running: the run of a mutant that is under way, not the judge nor a proof.
    """

    def __init__(self, reference: Program, sets: Iterable[InputSet], limit: float = float("inf")) -> None:
        self.reference = reference
        self.seconds = 0.0
        self.running: Running | None = None
        self._runs: list[tuple[InputSet, Value]] = []
        try:
            with time_limit(limit):
                self._run_on(sets)
        except TooSlow:
            if not self._runs:
                raise

    def _run_on(self, sets: Iterable[InputSet]) -> None:
        for one in sets:
            began = time.perf_counter()
            try:
                value = self.reference.runner.run(one.values).value
                self.seconds += time.perf_counter() - began
                self._runs.append((one, value))
            except HlotoolError as error:
                if isinstance(error, BackendFailed) and error.here:
                    raise

    @property
    def sets(self) -> Sequence[InputSet]:
        """The sets that the program runs on."""
        return [one for one, _ in self._runs]

    def fate(self, mutant: Mutant) -> Found:
        """What becomes of a mutant of the program, or of a later stage of it."""
        self.running = None
        try:
            tested = compile_program("mutant", "", mutant.module, "numpy", self.reference)
        except HlotoolError as error:
            return Found(Fate.UNUSABLE, str(error))
        # What the first sets do not show is often equivalent, and a proof by texts costs less than all sets.
        found = self.shown(tested, _BEFORE_PROOFS)
        if found.fate is Fate.KILLED:
            return found
        if proof := same_to_the_bit(mutant):
            return Found(Fate.EQUIVALENT, proof)
        found = self.shown(tested)
        if found.fate is Fate.SURVIVED and (proof := same_of_reals(self.reference, mutant, tested)):
            return Found(Fate.EQUIVALENT, proof)
        return found

    def shown(self, tested: Program, most: int | None = None) -> Found:
        """Whether some set shows that a program is wrong, among the first `most` of them."""
        excused, ran = "", False
        for number, (one, expected) in enumerate(self._runs[:most]):
            try:
                self.running = Running(number, one.name, time.perf_counter())
                verdict = self._verdict(tested, one, expected)
            except EndlessLoop:
                return Found(Fate.KILLED, f"{one.name}: it never ends", number)
            except HlotoolError:
                self.running = None
                continue
            ran = True
            if verdict.answer is Answer.BAD:
                return Found(Fate.KILLED, one.name, number)
            if verdict is not Verdict.IDENTICAL and not excused:
                excused = f"{verdict.value} on {one.name}"
        return Found(Fate.SURVIVED, excused) if ran else Found(Fate.UNUSABLE, "it runs on no set")

    def _verdict(self, tested: Program, one: InputSet, expected: Value) -> Verdict:
        outcome = tested.runner.run(one.values, expected)
        self.running = None
        if same_bits(tested.runner.result, expected, outcome.value):
            return Verdict.IDENTICAL
        options = ReplayOptions(budget=_JUDGING, first_divergence=False)
        return compare_results(self.reference, tested, one.values, expected, outcome, options).verdict


#: Seconds for one mutant: some loops never end.
_SECONDS = 60.0
#: A run that takes so many times as long as the program on all sets is taken not to end.
_SLOWER = 10.0
#: Of the time that is left when the program has run once: what it may take to run on all sets. Mutants run on
#: them as well, most only on the first few.
_OF_SETS = 0.3


@dataclass(frozen=True, slots=True)
class MutationTask:
    """A program whose mutants are examined.

    Attributes:
        module: of the dump.
        reference: the stage that gives the expected values.
        tested: the stage that faults are planted in; the same where there is but one.
        options: which inputs, and how long it may take.
        count: of mutants.
        seed: of what is planted where.
        part: which mutants are examined here: those whose number leaves this remainder …
        parts: … divided by this.
    """

    module: DumpModule
    reference: Stage
    tested: Stage
    options: RunOptions
    count: int
    seed: int
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is there before the first fault.

    Attributes:
        reference: gives the expected values.
        tested: gets the faults; perhaps the same.
        every: trials of them.
        spent: units of work that a replay on the first trial is.
    """

    reference: Program
    tested: Program
    every: list[Trial]
    spent: int


def examine(task: MutationTask) -> MutatedRecord:
    """Plant faults, one at a time, and see which inputs show each, until the time of the options is over.

    Raises:
        HlotoolError: the programs cannot be read or run.
        Unsupported: they run on several devices, or no dimension has a size that was to be another one.
    """
    end = time.monotonic() + task.options.timeout
    found = MutatedRecord(
        name=task.module.title,
        path=str(task.tested.source),
        judged_by=task.reference.label,
        sets=[],
        mutants=[],
        is_late=True,
    )
    try:
        with time_limit(task.options.timeout):
            prepared = _prepared(task, found.notes)
        sets = sets_of(prepared.reference, prepared.every, task.options, prepared.spent)
        examiner = Examiner(prepared.reference, sets, _OF_SETS * (end - time.monotonic()))
    except TooSlow:
        return found
    mutants: list[MutantRecord] = []
    drawn = draw(prepared.tested.module, task.count, task.seed)
    is_late = False
    for mutant in islice(drawn, task.part, None, task.parts):
        record = _record(mutant, examiner, end)
        if is_late := record is None:
            break
        mutants.append(record)
    return msgspec.structs.replace(
        found,
        judged_by=prepared.reference.label,
        sets=[one.name for one in examiner.sets],
        mutants=mutants,
        is_late=is_late,
    )


def _prepared(task: MutationTask, notes: list[str]) -> _Prepared:
    """The programs, which have run once; notes say what became of their sizes."""
    before = work_done()
    fitted = fitting(Task(task.module, task.options), [task.reference, task.tested])
    if scaled := f"scaled: {fitted.scaled.record.text}" if fitted.scaled else fitted.note:
        notes.append(scaled)
    module = fitted.task.module
    reference = load_program(module, task.reference, "numpy")
    tested = reference
    if task.tested is not task.reference:
        tested = load_program(module, task.tested, "numpy", reference)
    if not all(isinstance(p.runner, OneDevice) for p in (reference, tested)):
        raise Unsupported("mutants of programs for several devices")
    every = list(
        trials(module, reference.module, task.options, reference.runner.copies, scaled=fitted.scaled)
    )
    compare_programs(reference, tested, every[0].arguments)
    return _Prepared(reference, tested, every, work_done() - before)


def sets_of(reference: Program, every: list[Trial], options: ReplayOptions, spent: int) -> Iterator[InputSet]:
    """The sets that a replay would take: what is given or captured, or the plain set and further ones.

    Args:
        reference: of the mutants.
        every: trials of it.
        options: of the user; `thorough` takes all sets.
        spent: units of work that a replay on the first trial is.
    """
    for number, trial in enumerate(every):
        yield InputSet(trial.name or (f"{PLAIN} {number}" if number else PLAIN), trial.arguments)
    [first, *others] = every
    if others or first.inputs.origin != GENERATED or not options.further_sets:
        return
    every_set = directed_sets(reference.module, first.arguments, options.seed, options.input_range)
    for one, is_in_budget in in_budget(every_set, allowed_for_sets(options, spent)):
        if not is_in_budget:
            return
        yield one


def _record(mutant: Mutant, examiner: Examiner, end: float) -> MutantRecord | None:
    """What becomes of a mutant; None where the time, in `time.monotonic`, was over before that was known."""
    began = time.monotonic()
    if began >= end:
        return None
    found = fate_within(mutant, examiner, min(_SECONDS, end - began))
    now = time.monotonic()
    if now >= end and found.fate is Fate.SURVIVED:
        return None
    return MutantRecord(
        fault=mutant.kind.name,
        family=family_of(mutant.kind),
        imitates=mutant.kind.imitates,
        computation=mutant.site.computation,
        source=source_of(mutant.right, [find(mutant.right, mutant.site)[1]]),
        fate=found.fate.value,
        by=found.by,
        seconds=now - began,
    )


def fate_within(mutant: Mutant, examiner: Examiner, seconds: float = _SECONDS) -> Found:
    """The fate of a mutant; one that does not end is killed by the parent after a time limit."""
    try:
        with time_limit(seconds):
            return examiner.fate(mutant)
    except TooSlow:
        running = examiner.running
        if running is not None and _SLOWER * examiner.seconds < running.seconds:
            return Found(Fate.KILLED, f"{running.name}: it does not end", running.number)
        return Found(Fate.SURVIVED, f"not examined to the end in {seconds:g} s")
