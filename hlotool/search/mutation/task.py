"""Mutants of one program, drawn and examined in a worker process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from hlotool.directed.plan import directed_sets
from hlotool.directed.sets import PLAIN, InputSet
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import Unsupported
from hlotool.faults.families import family_of
from hlotool.faults.kind import find
from hlotool.findings.provenance import source_of
from hlotool.replay.devices.runners import OneDevice
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program, load_program
from hlotool.replay.set_budget import allowed_for_sets, in_budget
from hlotool.replay.trials import GENERATED, Trial, trials
from hlotool.search.comparing import compare_programs
from hlotool.search.mutation.fates import Examiner, Fate, Found
from hlotool.search.mutation.mutants import Mutant, draw
from hlotool.search.mutation.records import MutantRecord, MutatedRecord
from hlotool.workers.time_limit import TooSlow, time_limit
from hlotool.workers.work_limit import work_done

#: Seconds for one mutant: some loops never end.
_SECONDS = 60.0
#: A run that takes so many times as long as the program on all sets is taken not to end.
_SLOWER = 10.0


@dataclass(frozen=True, slots=True)
class MutationTask:
    """A program whose mutants are examined.

    Attributes:
        module: of the dump.
        reference: the stage that gives the expected values.
        tested: the stage that faults are planted in; the same where there is but one.
        options: which inputs.
        count: of mutants.
        seed: of what is planted where.
        part: which mutants are examined here: those whose number leaves this remainder …
        parts: … divided by this.
    """

    module: DumpModule
    reference: Stage
    tested: Stage
    options: ReplayOptions
    count: int
    seed: int
    part: int = 0
    parts: int = 1


def examine(task: MutationTask) -> MutatedRecord:
    """Plant faults, one at a time, and see which inputs show each.

    Raises:
        HlotoolError: the programs cannot be read or run.
        Unsupported: they run on several devices.
    """
    before = work_done()
    reference = load_program(task.module, task.reference, "numpy")
    tested = reference
    if task.tested is not task.reference:
        tested = load_program(task.module, task.tested, "numpy", reference)
    if not all(isinstance(p.runner, OneDevice) for p in (reference, tested)):
        raise Unsupported("mutants of programs for several devices")
    every = list(trials(task.module, reference.module, task.options, reference.runner.copies))
    compare_programs(reference, tested, every[0].arguments)
    examiner = Examiner(reference, sets_of(reference, every, task.options, work_done() - before))
    drawn = list(draw(tested.module, task.count, task.seed))[task.part :: task.parts]
    return MutatedRecord(
        name=task.module.title,
        path=str(task.tested.source),
        judged_by=reference.label,
        sets=[one.name for one in examiner.sets],
        mutants=[_record(mutant, examiner) for mutant in drawn],
    )


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


def _record(mutant: Mutant, examiner: Examiner) -> MutantRecord:
    began = time.perf_counter()
    found = fate_within(mutant, examiner)
    return MutantRecord(
        fault=mutant.kind.name,
        family=family_of(mutant.kind),
        imitates=mutant.kind.imitates,
        computation=mutant.site.computation,
        source=source_of(mutant.right, [find(mutant.right, mutant.site)[1]]),
        fate=found.fate.value,
        by=found.by,
        seconds=time.perf_counter() - began,
    )


def fate_within(mutant: Mutant, examiner: Examiner) -> Found:
    """The fate of a mutant; one that does not end is noticed by whoever waits for it."""
    try:
        with time_limit(_SECONDS):
            return examiner.fate(mutant)
    except TooSlow:
        running = examiner.running
        if running is not None and _SLOWER * examiner.seconds < running.seconds:
            return Found(Fate.KILLED, f"{running.name}: it does not end", running.number)
        return Found(Fate.SURVIVED, f"not examined to the end in {_SECONDS:g} s")
