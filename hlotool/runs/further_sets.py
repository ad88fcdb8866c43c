"""What does not differ on the plain inputs is run on further ones, as many as the budget allows.

Whatever the plain set said, short of `wrong` for every output, further sets are asked of the outputs that
are not wrong yet. The first set that shows that one is takes the place of the plain one: its row is the
module's, and its values are saved, so that everything after starts from there. What a later set shows wrong
beside it is noted, for another cause may be behind it. What a further set cannot tell (a run that takes too
long, an overflow on one side only) is no verdict on the module: the plain row stands, and names the sets. A
loop that ends in the reference and not in the tested program is a finding, that says on which side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from hlotool.backends.base import Value
from hlotool.errors import BackendFailed, HlotoolError, Miscompiled
from hlotool.inputs.adversarial.sets import InputSet, in_words
from hlotool.ir.arrays import flatten, unflatten
from hlotool.ir.types import ShapeIndex
from hlotool.judge.failures import verdict_of
from hlotool.judge.records import output_name
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.runs.device_arguments import further_sets
from hlotool.runs.leaves import same_bits, save_inputs
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.other_inputs import (
    OF_SETS,
    Allowed,
    Limits,
    allowed_for_sets,
    ends_like,
    most_work,
)
from hlotool.runs.program import Program
from hlotool.runs.promises import broken_on, depends_on_values
from hlotool.runs.records import GENERATED, ModuleRecord, SetRecord
from hlotool.runs.rows import failed_comparison
from hlotool.runs.runners import OneDevice, Outcome
from hlotool.runs.task import Task
from hlotool.runs.trials import Trial
from hlotool.system.resources import TooMuchWork, TooSlow, alarms, work_done
from hlotool.system.worker import tell

#: Of what further sets may be together: what it may take to find out that one program does not end.
_TO_THE_END: Final = 8

#: Judges the outcome of a tested program: the trial, what the reference returned, what the program did, and
#: whether all that may be said of it is wanted, or the verdict on its values alone.
Judge = Callable[[Trial, Value, Outcome, bool], ModuleRecord]
#: Is told of a run of the reference on ordinary inputs: the trial, and the work that it was.
RanOn = Callable[[Trial, int], None]


class Compared(Struct, frozen=True, eq=False):
    """Two programs that take the same arguments.

    Attributes:
        task: the module, and what the user wants.
        reference: gives the expected values.
        program: is tested.
        trial: the plain one.
        judge: says what a difference means.
    """

    task: Task
    reference: Program
    program: Program
    trial: Trial
    judge: Judge

    @property
    def is_here(self) -> bool:
        """Whether both run in this process; waiting for another one must not be interrupted."""
        return self.program.backend == self.reference.backend


class _Search(Struct):
    """What further sets have shown so far.

    Attributes:
        tried: the sets.
        wrong: outputs that are known to be wrong: no set is asked of them again.
        notes: of outputs that other sets than the shown one show to be wrong.
    """

    tried: list[SetRecord] = field(default_factory=list)
    wrong: set[ShapeIndex] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


@alarms()
def on_further_sets(
    compared: Compared, row: ModuleRecord, spent: int, programs: int, run: int, ran: RanOn
) -> tuple[ModuleRecord, Trial]:
    """The row of a module after further sets.

    Args:
        compared: the programs.
        row: of the plain set.
        spent: units of work that the module was so far.
        programs: of the module that are tested, and share its time limit.
        run: units of work of a run of the reference.
        ran: see `RanOn`.

    Returns:
        the row of the first set that shows that the program is wrong, with the trial of that set; otherwise
        the plain row, which names the sets, and the plain trial.
    """
    task, trial = compared.task, compared.trial
    search = _Search(wrong=_wrong_outputs(row))
    is_wrong = row.verdict.answer is Answer.BAD
    if not is_wanted(task.options, trial) or (is_wrong and len(search.wrong) >= len(row.leaves)):
        return row, trial
    limits = Limits(allowed_for_sets(task.options, spent, programs, run))
    shown = (row, trial) if is_wrong else None
    is_news = row.verdict is Verdict.IDENTICAL
    differing: tuple[ModuleRecord, Trial] | None = None
    for one, verdict, found in _tried(compared, limits, ran, search, is_news):
        is_bad = found is not None and found[0].verdict.answer is Answer.BAD
        outputs = _wrong_outputs(found[0]) - search.wrong if found is not None and is_bad else set()
        search.tried.append(_record(one, verdict, outputs))
        search.wrong |= outputs
        if found is not None and verdict is Verdict.DIFFERS and differing is None:
            differing = found
        if found is None or not is_bad:
            continue
        if shown is None:
            shown = _with_file(compared, *found)
        elif outputs:  # a set that shows what is known shows nothing new
            file = _saved(compared, found[1], f".out{'.'.join(map(str, min(outputs)))}")
            search.notes.append(_another(one, sorted(outputs), file))
        if len(search.wrong) >= len(shown[0].leaves):
            break
    if shown is None and differing is not None:
        shown = _with_file(compared, *differing)
    row, trial = shown or (row, trial)
    if row.inputs is None:
        return row, trial
    inputs = msgspec.structs.replace(row.inputs, sets=search.tried, sets_cut=limits.cut)
    return msgspec.structs.replace(row, inputs=inputs, notes=[*row.notes, *search.notes]), trial


@alarms()
def inputs_that_show(compared: Compared, allowed: Allowed) -> str:
    """The file of a set that shows that a program is wrong which agrees on the plain one; empty without one.

    Args:
        compared: the programs.
        allowed: what it may cost.
    """
    if not is_wanted(compared.task.options, compared.trial):
        return ""

    def ignored(_: Trial, __: int) -> None:
        """It is not asked what these runs exercise."""

    for _, _, found in _tried(compared, Limits(allowed), ignored, _Search(), False):
        if found is not None and found[0].verdict.answer is Answer.BAD:
            return _saved(compared, found[1])
    return ""


def is_wanted(options: ReplayOptions, trial: Trial) -> bool:
    """Whether further sets say something: of generated inputs, judged as we judge."""
    is_generated = trial.inputs.origin == GENERATED
    # Tolerances and comparisons of the user suit the plain values.
    by_user = options.output_rtol or options.output_atol or options.compare_with
    is_judged = options.rtol is None and options.atol is None and not by_user
    return options.further_sets and is_generated and is_judged and trial.result is None


def _record(one: InputSet, verdict: Verdict, wrong: set[ShapeIndex]) -> SetRecord:
    outputs = [list(index) for index in sorted(wrong)]
    return SetRecord(name=one.name, odd=list(one.odd), aims=list(one.aims), verdict=verdict, wrong=outputs)


def _wrong_outputs(row: ModuleRecord) -> set[ShapeIndex]:
    return {tuple(leaf.index) for leaf in row.leaves if leaf.verdict.answer is Answer.BAD}


def _with_file(compared: Compared, row: ModuleRecord, trial: Trial) -> tuple[ModuleRecord, Trial]:
    """The row and the trial of a further set, whose values are saved."""
    inputs = msgspec.structs.replace(trial.inputs, file=_saved(compared, trial))
    return msgspec.structs.replace(row, inputs=inputs), trial


def _known_to_differ(row: ModuleRecord) -> ModuleRecord:
    """A row of which values say nothing, though all sets before gave the same bits: what the programs mean
    decides.
    """
    leaves = [
        msgspec.structs.replace(leaf, verdict=Verdict.DIFFERS) if leaf.is_unequal else leaf
        for leaf in row.leaves
    ]
    verdict = Verdict.DIFFERS if leaves != row.leaves else row.verdict
    return msgspec.structs.replace(row, verdict=verdict, leaves=leaves)


def _saved(compared: Compared, trial: Trial, ending: str = "") -> str:
    title = f"{compared.task.module.title}{ending}"
    return save_inputs(title, trial.arguments, compared.reference.runner.copies)


def _another(one: InputSet, outputs: list[ShapeIndex], file: str) -> str:
    """What is said of outputs that another set shows to be wrong."""
    names = ", ".join(map(output_name, outputs))
    saved = f": --inputs {file}" if file else ""
    verb = "is" if len(outputs) == 1 else "are"
    return f"another cause, perhaps: {names} {verb} wrong on {in_words(one)}{saved}"


def _tried(
    compared: Compared, limits: Limits, ran: RanOn, search: _Search, is_news: bool
) -> Iterator[tuple[InputSet, Verdict, tuple[ModuleRecord, Trial] | None]]:
    """Each set on which the reference runs, the verdict on it and, where the bits differ, the row.

    Args:
        compared: the programs.
        limits: end it.
        ran: told of runs.
        search: whose wrong outputs are left out.
        is_news: whether a difference is worth more than the limits: the plain set has none.
    """
    tell("extra inputs")
    reference, program, options = compared.reference, compared.program, compared.task.options
    copies, whole = reference.runner.copies, reference.whole
    module = (whole or reference).module
    is_plain = isinstance(reference.runner, OneDevice) and isinstance(program.runner, OneDevice)
    tested = program.module if is_plain and program.module is not module else None
    promises = is_plain and compared.is_here and _has_promises(compared)
    sets = further_sets(module, compared.trial.arguments, options.seed, options.input_range, copies, tested)
    while not limits.are_reached():
        try:
            with limits.hold():
                one = next(sets, None)
        except (TooMuchWork, TooSlow):
            continue
        if one is None:
            return
        if not compared.is_here and not one.suits_other_backends:
            continue
        other = _trial(one, compared.trial, options)
        try:
            with limits.hold(is_run=True) if compared.is_here else nullcontext():
                before = work_done()
                global_value = None if whole is None else whole.runner.run(one.values).value
                expected = reference.runner.run(one.values, global_value).value
                work = work_done() - before
            if not one.odd:
                ran(other, work)
            outcome = _outcome(compared, one, expected, work, limits)
            outcome = _without(search.wrong, reference, expected, outcome)
            row = None
            is_same = same_bits(reference.runner.result, expected, outcome.value) and not outcome.faults
            if is_same and promises and not one.odd:
                with limits.hold(is_run=True):
                    is_same = not broken_on(reference.module, program.module, one.values)
            if not is_same:
                is_free = (is_news and not search.wrong) or not compared.is_here
                before = work_done()
                with nullcontext() if is_free else limits.hold():
                    row = compared.judge(other, expected, outcome, False)
                limits.give_back(work_done() - before if is_free else 0)
                if row.verdict.answer is Answer.BAD:
                    row = compared.judge(other, expected, outcome, True)
                elif row.verdict is Verdict.UNSTABLE and is_free:
                    row = _known_to_differ(compared.judge(other, expected, outcome, True))
        except Miscompiled as error:
            failed = failed_comparison(compared.task, reference, program.label, program.path, error)
            yield one, failed.verdict, (msgspec.structs.replace(failed, inputs=other.inputs), other)
            return
        except BackendFailed as error:
            if error.here:
                return
            yield one, verdict_of(error), None
            continue
        except HlotoolError as error:
            yield one, verdict_of(error), None
            continue
        except (TooMuchWork, TooSlow):
            if not limits.are_reached():
                yield one, Verdict.TIMEOUT, None
            continue
        yield one, Verdict.IDENTICAL if row is None else row.verdict, None if row is None else (row, other)


def _has_promises(compared: Compared) -> bool:
    """Whether the tested program promises what only values tell, and no constant of it was made up."""
    reference, program = compared.reference, compared.program
    is_given = program.path != reference.path and not (reference.module.generated or program.module.generated)
    return is_given and depends_on_values(reference.module, program.module)


def _outcome(compared: Compared, one: InputSet, expected: Value, work: int, limits: Limits) -> Outcome:
    """What the tested program returns; raises Miscompiled where it does not end, and the reference did."""
    program, least = compared.program, OF_SETS
    try:
        with limits.hold(is_run=True) if compared.is_here else nullcontext():
            return program.runner.run(one.values, expected)
    except TooMuchWork:
        if most_work(work, least) > _TO_THE_END * limits.allowed.work:
            raise
        with ends_like(compared.reference, program, work, least):
            return program.runner.run(one.values, expected)


def _without(wrong: set[ShapeIndex], reference: Program, expected: Value, outcome: Outcome) -> Outcome:
    """An outcome in which outputs that are known to be wrong are as they should be."""
    if not wrong:
        return outcome
    shape = reference.runner.result
    pairs = zip(flatten(shape, expected), flatten(shape, outcome.value))
    parts = [right if index in wrong else given for (index, _, right), (_, _, given) in pairs]
    faults = {index: fault for index, fault in outcome.faults.items() if index not in wrong}
    return replace(outcome, value=unflatten(shape, parts), faults=faults)


def _trial(one: InputSet, plain: Trial, options: ReplayOptions) -> Trial:
    """A set as a trial of the module."""
    description = f"{in_words(one)}, generated with seed {options.seed}"
    inputs = msgspec.structs.replace(plain.inputs, description=description, rules=[])
    return Trial(one.values, inputs)
