"""Rows of comparisons: two results of one program, where they come from, and when they are no verdict.

Constants whose values a dump leaves out have generated ones, custom calls that cannot be executed elsewhere
have stand-ins. What agrees with them agrees; what differs may do so only because the true ones are others,
and so is unjudgeable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from hlotool.backends.base import Value
from hlotool.errors import HlotoolError
from hlotool.facts.dataflow import Leaves, join_leaves, source_of_output
from hlotool.facts.recognition import is_trivial
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import Shape
from hlotool.judge.records import output_name
from hlotool.judge.verdicts import DIFFERING, Answer, Verdict
from hlotool.runs.leaves import (
    Files,
    array_leaves,
    leaf_records,
    output_folder,
    output_records,
    save_leaves,
)
from hlotool.runs.program import Program
from hlotool.runs.records import REALITY, LeafRecord, ModuleRecord, OutputRecord
from hlotool.runs.runners import OneDevice, Outcome, Runner
from hlotool.runs.task import Task, failed_row
from hlotool.runs.trials import Trial

#: Verdicts that say that the programs are not the same.
_DOUBTED = DIFFERING | {Verdict.DIFFERS}


def opaque_calls(module: Module) -> list[Instruction]:
    """The custom calls of a program that have stand-ins."""
    if not module.has_stand_ins:
        return []
    from hlotool.backends.numpy.custom_calls import unknown_calls

    return list(unknown_calls(module))


def doubt(reference: Module, tested: Module) -> str:
    """Why a difference of two programs may come from what is unknown alone; empty where it cannot."""
    return _doubt_of_constants(reference, tested) or _doubt_of_calls(reference, tested)


def doubt_of(verdict: Verdict, reference: Module, tested: Module) -> str:
    """`doubt` of a verdict that says that the programs are not the same; empty for others."""
    return doubt(reference, tested) if verdict in _DOUBTED else ""


def _doubt_of_calls(reference: Module, tested: Module) -> str:
    """Calls of other keys have other stand-ins, though they may compute the same."""
    known, calls = opaque_calls(reference), opaque_calls(tested)
    if not known and not calls:
        return ""
    from hlotool.backends.numpy.custom_calls import key_of

    keys = Counter(map(key_of, known))
    other = next((call for call in calls if not keys[key_of(call)]), None)
    if other is not None:
        return f"the opaque call %{other.name} is written in another way than any of the original program"
    return ""


def _doubt_of_constants(reference: Module, tested: Module) -> str:
    """A compiler that knew the true values may have computed with them.

    Then a constant is gone, or there is one that the original program does not have.
    """
    if not reference.generated and not tested.generated:
        return ""
    names = {i.name for i in tested.instructions()}
    if gone := [name for name in reference.generated if name not in names]:
        return f"the compiler may have computed with the true value of %{gone[0]}, which is generated here"
    known = {i.literal.key for i in reference.instructions() if i.opcode == "constant" and i.literal}
    own = (i for i in tested.instructions() if i.opcode == "constant" and i.literal)
    made = next((i.name for i in own if i.literal and i.literal.key not in known), None)
    return f"%{made} may be computed from the true value of a constant that is generated here" if made else ""


class Actual(Struct, frozen=True, eq=False):
    """A result to be judged.

    Attributes:
        label: of the stage that gave it.
        path: of its file.
        origin: backend and version that computed it, or where it was captured.
        module: the program that gave it.
        facts: what its leaves depend on.
        outcome: the result.
        runner: what such results come from.
        program: what gave it, where that is not the reference.
        work: units of work that the runs of both sides were.
    """

    label: str
    path: str
    origin: str
    module: Module
    facts: Leaves
    outcome: Outcome
    runner: Runner
    program: Program | None = None
    work: int = 0

    @classmethod
    def computed(cls, program: Program, outcome: Outcome, work: int = 0) -> Actual:
        """What a program returned here."""
        return cls(
            program.label,
            program.path,
            program.backend,
            program.module,
            program.facts,
            outcome,
            program.runner,
            program,
            work,
        )

    @classmethod
    def given(cls, reference: Program, value: Value, origin: str, path: str = "", work: int = 0) -> Actual:
        """What the real program returned for the arguments of `reference`.

        Args:
            reference: the program as it should be.
            value: the result.
            origin: where it was captured.
            path: of the file that speaks for it; that of the reference when empty.
            work: units of work that the run of the reference was.
        """
        return cls(
            REALITY,
            path or reference.path,
            origin,
            reference.module,
            reference.facts,
            Outcome(value),
            reference.runner,
            work=work,
        )


def compare_row(
    task: Task,
    reference: Program,
    trial: Trial,
    expected: Value,
    actual: Actual,
    saves: bool = True,
    in_full: bool = True,
) -> ModuleRecord:
    """The row of one comparison, whose arrays are saved where the user wants that and `saves` is set.

    Unless it is wanted `in_full`, values alone decide: what the programs mean is not asked.
    """
    # What judges takes time to import, and not every run has two sides.
    from hlotool.runs.judging import freedoms_of, judged

    shape = reference.runner.result
    facts = join_leaves(reference.facts, actual.facts)
    allowed = freedoms_of(task, reference, actual)
    comparison = judged(task, reference, trial, expected, actual, facts, allowed, in_full)
    verdict = comparison.verdict
    runner = actual.runner
    is_real = actual.label == REALITY
    records = leaf_records(comparison, actual.module, facts, runner.result, runner.copies, is_real)
    if verdict is Verdict.WRONG:
        records = _with_heat(records, shape, expected, actual.outcome.value)
    if saves and task.options.save_outputs is not None and verdict is not Verdict.STRUCTURAL:
        names = task.module.title, trial.name, actual.label, task.options.one_of_several
        folder = output_folder(task.options.save_outputs, *names)
        left = save_leaves(folder, "expected", shape, expected)
        right = save_leaves(folder, "actual", shape, actual.outcome.value)
        records = [_with_files(record, left, right) for record in records]
    row = ModuleRecord(
        path=actual.path,
        name=task.module.title,
        verdict=verdict,
        stage_reference=reference.label,
        stage_tested=actual.label,
        reference=reference.backend,
        tested=actual.origin,
        reason=comparison.reason,
        inputs=trial.inputs,
        leaves=records,
        freedoms=allowed.record,
        unexplained=sum(leaf.evidence is not None and not leaf.evidence.explained for leaf in records),
        generated_constants=max(len(reference.module.generated), len(actual.module.generated)),
        opaque_calls=max(len(opaque_calls(reference.module)), len(opaque_calls(actual.module))),
        is_trivial=is_trivial(reference.module),
        notes=[
            *_warnings(reference, actual.program),
            *actual.outcome.notes,
            *_permissions(allowed.fast_math, records),
        ],
    )
    row = _with_faults(row, actual) if actual.outcome.faults else row
    row = _with_expectations(row, actual.module, trial)
    return _with_promises(row, reference, trial, actual.program, allowed.algorithm_unit)


def _with_expectations(row: ModuleRecord, module: Module, trial: Trial) -> ModuleRecord:
    """The row of a program that compares its own values, as StableHLO's tests do."""
    from hlotool.runs.expectations import expectations, unmet_expectations

    count = len(expectations(module))
    if not count or row.verdict.answer is Answer.BAD:
        return row
    if unmet := unmet_expectations(module, trial.arguments):
        reason = f"the program expects other values: {unmet[0].reason}"
        notes = [*row.notes, *(one.reason for one in unmet[1:])]
        return msgspec.structs.replace(row, verdict=unmet[0].verdict, reason=reason, notes=notes)
    note = f"all that the program expects of its values holds: {count} comparison{'s' if count > 1 else ''}"
    if row.verdict is Verdict.NOT_COMPARED:
        return msgspec.structs.replace(row, verdict=Verdict.AGREE, reason=note)
    return msgspec.structs.replace(row, notes=[*row.notes, note])


def _with_promises(
    row: ModuleRecord, reference: Program, trial: Trial, program: Program | None, unit: float
) -> ModuleRecord:
    """The row of a program that agrees, unless it promises to a backend what is not so."""
    if program is None or program.path == reference.path or row.verdict.answer is Answer.BAD:
        return row
    from hlotool.runs.promises import broken_promises, weaker_promises

    programs = (reference, program)
    # What is made up here may break promises that the true constants keep.
    runs = all(isinstance(p.runner, OneDevice) and not p.module.generated for p in programs)
    arguments = trial.arguments if runs else None
    broken = broken_promises(reference.module, program.module, arguments, unit)
    weaker = weaker_promises(reference.module, program.module)
    if not broken:
        return msgspec.structs.replace(row, weaker=weaker) if weaker else row
    reason = f"the values agree, and a promise to what generates code is not kept: {broken[0]}"
    return msgspec.structs.replace(
        row, verdict=Verdict.WRONG, reason=reason, notes=[*row.notes, reason, *broken[1:]]
    )


def _with_heat(records: list[LeafRecord], shape: Shape, expected: Value, actual: Value) -> list[LeafRecord]:
    """The records, those of wrong leaves with a map of where."""
    from hlotool.judge.metrics import heat_map

    others = {index: array for index, _, array in array_leaves(shape, actual)}
    maps = {
        index: heat_map(array, others[index], part.element_type)
        for index, part, array in array_leaves(shape, expected)
        if any(tuple(record.index) == index and record.verdict is Verdict.WRONG for record in records)
    }
    return [msgspec.structs.replace(record, heat=maps.get(tuple(record.index))) for record in records]


def _permissions(flags: Sequence[str], leaves: Sequence[LeafRecord]) -> Iterator[str]:
    """What the compiler was allowed to do with NaN and infinity, where one side has none."""
    if flags and any(leaf.nan_mismatches or leaf.inf_mismatches for leaf in leaves):
        yield f"compiled with {', '.join(flags)}: NaN and infinity need not be kept"


def _warnings(*programs: Program | None) -> Iterator[str]:
    """What is formally wrong with the programs of a row, each once."""
    yield from dict.fromkeys(warning for program in programs if program for warning in program.warnings)


def _with_faults(row: ModuleRecord, actual: Actual) -> ModuleRecord:
    """The row of a result that contradicts itself: however close the values are, they differ."""
    faults = actual.outcome.faults
    marked = [_with_fault(leaf, faults.get(tuple(leaf.index)), actual.module) for leaf in row.leaves]
    index, fault = next(iter(faults.items()))
    verdict = max(row.verdict, Verdict.WRONG, key=lambda verdict: verdict.rank)
    reason = f"{output_name(index)}: {fault}"
    return msgspec.structs.replace(
        row, verdict=verdict, reason=reason, leaves=marked, notes=[*row.notes, reason]
    )


def _with_fault(leaf: LeafRecord, fault: str | None, module: Module) -> LeafRecord:
    if fault is None or leaf.verdict is Verdict.STRUCTURAL:
        return leaf
    source = source_of_output(module, tuple(leaf.index))
    return msgspec.structs.replace(leaf, verdict=Verdict.WRONG, reason=fault, source=source)


def failed_comparison(
    task: Task, reference: Program, label: str, path: str, error: HlotoolError
) -> ModuleRecord:
    """The row of a tested stage that came to nothing."""
    return msgspec.structs.replace(
        failed_row(task, error, 0.0, path),
        stage_reference=reference.label,
        reference=reference.backend,
        stage_tested=label,
    )


def inherited_row(result: ModuleRecord, stage: ModuleRecord) -> ModuleRecord:
    """The row of a result, with the verdict of the stage that gives the same.

    Two texts can be executed in other ways than they were, a result cannot: the verdict on the stage knows
    more, and what it says happened before code was generated.

    Args:
        result: what the program returned, here or where it was captured, against the reference.
        stage: the last stage against the reference, on the same arguments.
    """
    return msgspec.structs.replace(
        stage,
        path=result.path,
        stage_tested=result.stage_tested,
        tested=result.tested,
        notes=list(dict.fromkeys([*stage.notes, *result.notes])),
        leaves=[
            msgspec.structs.replace(leaf, expected_file=old.expected_file, actual_file=old.actual_file)
            for leaf, old in zip(stage.leaves, result.leaves)
        ],
        reason=f"the same as {stage.stage_tested} gives on the reference: {stage.reason}",
        seconds=result.seconds,
    )


def structural_row(task: Task, reference: Program, program: Program, reason: str) -> ModuleRecord:
    """The row of a program that does not even take the reference's arguments."""
    return ModuleRecord(
        path=program.path,
        name=task.module.title,
        verdict=Verdict.STRUCTURAL,
        stage_reference=reference.label,
        stage_tested=program.label,
        reference=reference.backend,
        tested=program.backend,
        reason=reason,
    )


def uncompared_row(task: Task, program: Program, trial: Trial, value: Value) -> ModuleRecord:
    """The row of a program whose result there is nothing to compare with."""
    shape = program.runner.result
    outputs = output_records(shape, value)
    if task.options.save_outputs is not None:
        folder = output_folder(task.options.save_outputs, task.module.title, trial.name, program.label)
        files = save_leaves(folder, "value", shape, value)
        outputs = [_with_file(output, files) for output in outputs]
    row = ModuleRecord(
        path=program.path,
        name=task.module.title,
        verdict=Verdict.NOT_COMPARED,
        stage_reference=program.label,
        reference=program.backend,
        reason=task.module.unpaired_reason or "no stage to compare it with was asked for",
        inputs=trial.inputs,
        outputs=outputs,
        generated_constants=len(program.module.generated),
        opaque_calls=len(opaque_calls(program.module)),
        is_trivial=is_trivial(program.module),
        notes=list(program.warnings),
    )
    return _with_expectations(row, program.module, trial)


def _with_files(record: LeafRecord, left: Files, right: Files) -> LeafRecord:
    index = tuple(record.index)
    return msgspec.structs.replace(
        record, expected_file=left.get(index, ""), actual_file=right.get(index, "")
    )


def _with_file(record: OutputRecord, files: Files) -> OutputRecord:
    return msgspec.structs.replace(record, file=files.get(tuple(record.index), ""))
