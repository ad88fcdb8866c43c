"""A reduction from start to end: which program, judged by what, in which order it is made smaller.

What removes most comes first, and again after whatever opened new ways.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from hlotool.blame.reduction.case import Case, case_of, without_positions
from hlotool.blame.reduction.case_worker import CaseOutcome
from hlotool.blame.reduction.nested import flatten, simplify_nested
from hlotool.blame.reduction.oracle import CaseOracle
from hlotool.blame.reduction.simpler import (
    drop_devices,
    shrink_shapes,
    simplify_types,
    simplify_values,
)
from hlotool.blame.reduction.subgraph import minimize_entry
from hlotool.errors import Unsupported, UsageError
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.verifier import verify_or_raise
from hlotool.judge.verdicts import Answer
from hlotool.runs.device_arguments import further_sets
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import load_program
from hlotool.runs.records import GENERATED, InputsRecord
from hlotool.runs.scaling import fitting
from hlotool.runs.task import Task, as_asked
from hlotool.runs.trials import trials
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.user_input import did_you_mean

_Step = Callable[[Case, CaseOracle], Case]

#: What a reduction does to the graph, until none of it makes the program smaller.
_GRAPH: tuple[tuple[str, _Step], ...] = (
    ("instructions", minimize_entry),
    ("calls and loops", flatten),
    ("nested computations", simplify_nested),
    ("devices", drop_devices),
)

#: What it does to the data, each until nothing gets smaller.
_DATA: tuple[tuple[str, _Step], ...] = (
    ("shapes", shrink_shapes),
    ("types", simplify_types),
    ("values", simplify_values),
)


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a reduction came to.

    Attributes:
        case: the smallest program found that fails in the same way.
        before: instructions of the original.
        failure: how it fails.
        reason: in one line.
        passing: a program that does not fail and is nearest to it; None when none was seen.
        notes: what could not be tried.
    """

    case: Case
    before: int
    failure: str
    reason: str
    passing: Case | None
    notes: tuple[str, ...] = ()


def reduce_case(case: Case, oracle: CaseOracle) -> Reduction:
    """Make a failing program small.

    Args:
        case: the program; it must fail.
        oracle: judges programs.

    Raises:
        UsageError: it does not fail.
    """
    oracle.steps.listener.phase("does it fail?", 1)
    first = oracle.lock(case)
    case.device = _failing_device(case, first)
    before, notes = case.size, dict[str, None]()
    while True:
        known = case.key
        case = _until_stable(case, oracle, _GRAPH, notes)
        case = _until_stable(case, oracle, _DATA, notes)
        if case.key == known:
            break
    passing = oracle.closest_passing(case)
    reason = oracle.reason or first.reason
    return Reduction(case, before, str(oracle.locked), reason, passing, tuple(notes))


def _failing_device(case: Case, outcome: CaseOutcome) -> int:
    """The first of the devices whose result is wrong, where that is known."""
    outputs = outcome.row.signature.outputs if outcome.row is not None else ()
    return outputs[0][0] if case.copies > 1 and outputs else 0


def _until_stable(
    case: Case, oracle: CaseOracle, steps: tuple[tuple[str, _Step], ...], notes: dict[str, None]
) -> Case:
    while True:
        known = case.key
        for name, step in steps:
            oracle.steps.listener.phase(f"{name}: {case.size} instructions")
            try:
                case = step(case, oracle)
            except Unsupported as error:
                notes[f"{name}: {error}"] = None
        if case.key == known:
            return case


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
