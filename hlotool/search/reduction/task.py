"""A reduction from start to end: which program, judged by what, and what is left of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from hlotool.dump.directory import open_dump
from hlotool.dump.loading import load_stage
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import UsageError
from hlotool.findings.verdict import Answer
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.verifier import verify_or_raise
from hlotool.names import did_you_mean
from hlotool.replay.devices.sets import further_sets
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import load_program
from hlotool.replay.records import InputsRecord
from hlotool.replay.scaling import fitting
from hlotool.replay.task import Task, as_asked
from hlotool.replay.trials import GENERATED, trials
from hlotool.search.reduction.case import Case, case_of
from hlotool.search.reduction.oracle import CaseOracle
from hlotool.search.reduction.reducer import Reduction, reduce_case
from hlotool.search.strip_positions import without_positions

#: Further sets that are tried: each may be a compilation.
_MOST_SETS = 24


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program to reduce.

    Attributes:
        case: the program and its arguments.
        inputs: where the arguments come from.
        notes: what became of the sizes of a program that is too large for this machine.
    """

    case: Case
    inputs: InputsRecord
    notes: tuple[str, ...] = ()


def load_case(path: str, options: ReplayOptions, stage: str = "", may_be_cut: bool = False) -> Loaded:
    """Read the program at `path` and find arguments for it.

    Args:
        path: of a file of HLO, or of a dump of one module.
        options: which arguments.
        stage: label of the stage to take; the first one when empty.
        may_be_cut: a text that ends too early will do.

    Raises:
        DumpError: nothing can be read there.
        UsageError: there are several programs, or no such stage.
        InputError: it is no valid HLO, or the arguments do not fit.
        Unsupported: the reference cannot run a program for each of several devices.
    """
    owner, chosen = _choose(path, stage)
    fitted = fitting(Task(as_asked(owner, options), options), [chosen])
    owner = fitted.task.module
    module = load_stage(owner, chosen, may_be_cut=may_be_cut)
    verify_or_raise(module)
    if is_per_device(module):
        return _of_devices(owner, chosen, options)
    trial = next(trials(owner, module, options, scaled=fitted.scaled))
    scaled = f"scaled: {fitted.scaled.record.text}" if fitted.scaled else fitted.note
    notes = (scaled,) if scaled else ()
    return Loaded(Case(module, trial.arguments), trial.inputs, notes)


def _of_devices(owner: DumpModule, stage: Stage, options: ReplayOptions) -> Loaded:
    """A program for each of several devices; in a dump it takes its parts of the first stage's arguments."""
    program = load_program(owner, stage, options.reference)
    origin = load_program(owner, owner.stages[0], options.reference) if stage in owner.stages else program
    if origin.runner.copies == 1:
        program = load_program(owner, stage, options.reference, origin)
    else:
        origin = program
    trial = next(trials(owner, origin.module, options, origin.runner.copies))
    return Loaded(case_of(program, trial.arguments), trial.inputs)


def _choose(path: str, stage: str) -> tuple[DumpModule, Stage]:
    modules = [m for m in open_dump(path).modules if m.stages or m.others]
    if len(modules) != 1:
        raise UsageError(f"{path}: one program is needed, here are {len(modules)}; name its file")
    [owner] = modules
    stages: Sequence[Stage] = [*owner.stages, *owner.others]
    found = [s for s in stages if not stage or stage in (s.label, s.kind.value)]
    if not found:
        labels = [s.label for s in stages]
        meant = did_you_mean(stage, labels)
        raise UsageError(f"{path}: no stage {stage!r}; there are: {', '.join(labels[:8])}{meant}")
    return owner, found[0]


def on_inputs_that_show(loaded: Loaded, oracle: CaseOracle, options: ReplayOptions) -> Loaded:
    """The program on inputs on which it fails: generated ones on which it passes give way to a further set.

    Returns:
        `loaded` where it fails at once, is given its arguments, or passes on the first few sets, too.
    """
    case = loaded.case
    if loaded.inputs.origin != GENERATED or not options.further_sets:
        return loaded
    if oracle.outcome(case, "the plain inputs").answer is not Answer.GOOD:
        return loaded
    sets = further_sets(case.module, case.arguments, options.seed, options.input_range, case.copies)
    further = (one for one in sets if one.suits_other_backends)
    for one in islice(further, _MOST_SETS):
        other = replace(case, arguments=one.values)
        if oracle.outcome(other, f"set `{one.name}`").answer is Answer.BAD:
            description = f"set `{one.name}`, generated with seed {options.seed}"
            return Loaded(
                other, msgspec.structs.replace(loaded.inputs, description=description, rules=[]), loaded.notes
            )
    return loaded


def reduce_loaded(loaded: Loaded, oracle: CaseOracle) -> Reduction:
    """Reduce a program; source positions go last, if it still fails without them."""
    found = reduce_case(loaded.case, oracle)
    plain = bare_case(found.case)
    if not oracle.fails(plain, "without source positions"):
        return found
    return Reduction(plain, found.before, found.failure, oracle.reason, found.passing, found.notes)


def bare_case(case: Case) -> Case:
    """The program without source positions."""
    return case.changed(without_positions(case.module))
