"""The instructions to blame, found in a worker process and sent home as text.

Where every stage is right and the result is wrong, the kernel or library call of the compiled program that
made it. Nothing of the values in between is known, but which outputs are right and which are wrong is: what
only wrong outputs need comes first.

Programs for several devices become programs that run alone. What no device exchanges values in is a program
for one of them. A program that was partitioned is compared with what the partitioner was given, on global
arrays, or with another partitioned one, device by device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import msgspec

from hlotool.backends.base import Value
from hlotool.backends.registry import executes_code, parse_spec
from hlotool.blame.bisection.records import Level, PairRecord, SpotRecord
from hlotool.blame.bisection.stages import stage_program, stage_trials
from hlotool.blame.reduction.case import (
    case_of,
    for_one_device,
    observe,
    remove_positions,
    without_positions,
)
from hlotool.blame.reduction.case_worker import compare_programs
from hlotool.blame.reduction.subgraph import cut_out as cut_out_of
from hlotool.errors import HlotoolError, Unsupported
from hlotool.facts.dataflow import producers, source_of_output
from hlotool.inputs.given import arrays_in, as_values, npz_bytes
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.attributes import Sharding
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.partitioning import own_arguments
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import reachable
from hlotool.judge.locate.isolation import divergence_on
from hlotool.judge.locate.locator import Found, Search
from hlotool.judge.locate.report import divergence_record, first_divergence
from hlotool.judge.locate.spots import Spot, cut_out, with_surroundings
from hlotool.judge.records import DivergenceRecord
from hlotool.judge.verdicts import DIFFERING, Verdict
from hlotool.runs.divergence_row import OTHER_FUNCTIONS, is_wide_enough, open_exact_search
from hlotool.runs.observed_programs import leaves_of, subjects
from hlotool.runs.program import Program, compile_program, stated_sharding
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task

#: No code of their own runs for these.
_NO_KERNEL = opcodes_with(Trait.STRUCTURE, Trait.SAME_ORDER) - {"reshape"} | {"opt-barrier", "after-all"}

#: Handed to a library where they stand alone.
_LIBRARY = frozenset(
    {"custom-call", "dot", "convolution", "fft", "sort", "topk", "cholesky", "triangular-solve", "ragged-dot"}
)


def suspects(module: Module, wrong: Iterable[ShapeIndex], right: Iterable[ShapeIndex]) -> list[Instruction]:
    """Kernels of the entry that may have made wrong outputs, the likeliest first.

    Args:
        module: the program as compiled.
        wrong: leaves of its result that are wrong.
        right: leaves that are as they should be.
    """
    innocent = set(_needed(module, right))
    needed = [i for i in _needed(module, wrong) if i.opcode not in _NO_KERNEL]
    return [i for i in needed if i not in innocent] or needed


def _needed(module: Module, outputs: Iterable[ShapeIndex]) -> list[Instruction]:
    """What the outputs are computed from, breadth first."""
    found = dict.fromkeys(producers(module.entry, index)[0] for index in outputs)
    queue = list(found)
    for instruction in queue:
        fresh = [o for o in instruction.operands if o not in found]
        found.update(dict.fromkeys(fresh))
        queue += fresh
    return queue


def level_of(kernel: Instruction) -> Level:
    """Whether a library runs it, or code that the compiler made."""
    if kernel.opcode == "fusion":
        is_library = kernel.attributes.get("kind") == "kCustom" and "__triton" not in kernel.config_text
        return "runtime-library" if is_library else "codegen"
    return "runtime-library" if kernel.opcode in _LIBRARY else "codegen"


def opcodes_within(kernel: Instruction) -> list[str]:
    """The operations that a kernel does, each once."""
    bodies = [i for c in kernel.called for inner in reachable(c) for i in inner.instructions]
    found = dict.fromkeys(i.opcode for i in bodies if i.opcode not in _NO_KERNEL)
    return list(found) or [kernel.opcode]


#: What workers call.
FUNCTION = "hlotool.blame.bisection.spotting:stage_spot"
RESULT_FUNCTION = "hlotool.blame.bisection.spotting:result_spot"

#: Arguments of whole stages that a record may hold.
_MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class SpotQuestion:
    """Where do two stages part?

    Attributes:
        task: the module.
        good: number of the stage that is right.
        bad: number of the stage that is wrong.
        outputs: leaves that differ.
        comparison: that shows it.
    """

    task: Task
    good: int
    bad: int
    outputs: tuple[ShapeIndex, ...]
    comparison: ModuleRecord


def stage_spot(question: SpotQuestion) -> SpotRecord | str:
    """The instructions of the wrong stage to blame; in words why they cannot be told."""
    try:
        return _stage_spot(question)
    except HlotoolError as error:
        return str(error)


def _stage_spot(question: SpotQuestion) -> SpotRecord:
    before, after = (stage_program(question.task, n) for n in (question.good, question.bad))
    trial = stage_trials(question.task)[0]
    if question.comparison.verdict in OTHER_FUNCTIONS:
        parts = question.comparison, question.task.options, before, after, trial, Budget()
        return _spot_of(question, *open_exact_search(*parts), None)
    sides = subjects(before, after, trial.arguments)
    outputs = leaves_of(before, question.outputs)
    wide = (
        first_divergence(*sides, outputs, Budget(), True)
        if is_wide_enough(question.comparison, after.module)
        else None
    )
    return _spot_of(question, Search(*sides, Budget()), outputs, wide)


def _spot_of(
    question: SpotQuestion, search: Search, outputs: Sequence[ShapeIndex], wide: DivergenceRecord | None
) -> SpotRecord:
    """What a search finds, cut out; `wide` is what another one found in f64."""
    with closing(search):
        found = search.first(outputs)
        record = divergence_record(search, found, outputs)
        spot = _record(question, found, record, wide or record)
        around = with_surroundings(found, outputs) if spot.after else None
        return msgspec.structs.replace(spot, around=_around(question, around))


def _around(question: SpotQuestion, spot: Spot | None) -> PairRecord | None:
    """The smallest programs around the spot that differ as the stages do: at last the stages themselves.

    What the wrong value makes of what comes after it, such as a NaN, they need not show.
    """
    before, after = (stage_program(question.task, n) for n in (question.good, question.bad))
    trial = stage_trials(question.task)[0]
    pairs = [] if spot is None else [spot]
    if sum(array.nbytes for array in arrays_in(trial.arguments)) <= _MOST_BYTES:
        owner = question.task.module
        sharding = stated_sharding(owner, owner.stages[question.bad], after.module)
        pairs.append(whole_stages(before, after, trial.arguments, sharding))
    for pair in pairs:
        one, other = (without_positions(module) for module in (pair.before, pair.after))
        row = compare_modules(question.task, one, other, pair.arguments, question.comparison.verdict)
        if row is not None and row.verdict is question.comparison.verdict:
            inputs = npz_bytes(pair.arguments, pair.copies)
            return PairRecord(before=one.to_text(), after=other.to_text(), inputs=inputs, comparison=row)
    return None


def _record(
    question: SpotQuestion, found: Found, declared: DivergenceRecord, divergence: DivergenceRecord
) -> SpotRecord:
    """What is to blame, cut out as declared where the search in f64 came to the same instructions."""
    opcodes = {i.name: i.opcode for i in found.tested.original.instructions()}
    record = SpotRecord(
        instructions=divergence.instructions,
        opcodes=[opcodes[name] for name in divergence.instructions],
        place=divergence.around[::-1],
        inside=divergence.inside.removeprefix("ROOT ").partition(" ")[0].removeprefix("%"),
        source=divergence.source,
        divergence=divergence,
    )
    spot = cut_out(found) if divergence.instructions == declared.instructions else None
    alone = [] if spot is None else list(on_its_own(spot))
    wanted = question.comparison.verdict
    rows = [compare_modules(question.task, each.before, each.after, each.arguments, wanted) for each in alone]
    if not alone:
        return record
    number = next((n for n, row in enumerate(rows) if row is not None and row.verdict in DIFFERING), 0)
    spot = alone[number]
    remove_positions(spot.before)
    remove_positions(spot.after)
    return msgspec.structs.replace(
        record,
        before=spot.before.to_text(),
        after=spot.after.to_text(),
        inputs=npz_bytes(spot.arguments, spot.copies),
        comparison=rows[number],
    )


@dataclass(frozen=True, slots=True)
class ResultQuestion:
    """Which kernel of the compiled program made the wrong result?

    Attributes:
        task: the module.
        wrong: leaves of the result that are wrong.
        right: leaves that are as they should be.
    """

    task: Task
    wrong: tuple[ShapeIndex, ...]
    right: tuple[ShapeIndex, ...]


def result_spot(question: ResultQuestion) -> SpotRecord | str:
    """The likeliest kernel, and the others that may be meant; in words why they cannot be told."""
    try:
        return _result_spot(question)
    except HlotoolError as error:
        return str(error)


def _result_spot(question: ResultQuestion) -> SpotRecord:
    program = stage_program(question.task, len(question.task.module.stages) - 1)
    found = suspects(program.module, question.wrong, question.right)
    if not found:
        raise Unsupported("no code runs for the wrong outputs")
    trial = next(t for t in stage_trials(question.task) if t.result is not None)
    divergence = _seen_alone(question.task, program.module, trial.arguments, question.wrong)
    if divergence is not None:
        named = {i.name: i for i in program.module.instructions()}
        found = [named[name] for name in divergence.instructions]
    kernel = found[0]
    whole = case_of(program, trial.arguments)
    alone = cut_out_of(whole, [kernel], observe(whole, kernel.operands))
    text = without_positions(alone.module).to_text() if alone else ""
    inputs = npz_bytes(alone.arguments, alone.copies) if alone and alone.arguments else b""
    origin = stage_program(question.task, 0)
    copies = origin.runner.copies
    return SpotRecord(
        level=level_of(kernel),
        instructions=[i.name for i in found],
        opcodes=opcodes_within(kernel),
        source=source_of_output(program.module, question.wrong[0]),
        after=text,
        inputs=inputs,
        divergence=divergence,
        program=origin.module.to_text(),
        program_inputs=npz_bytes(trial.arguments, copies),
        outputs=npz_bytes(as_values(trial.result, copies), copies),
    )


def _seen_alone(
    task: Task, module: Module, arguments: Sequence[Value], wrong: Sequence[ShapeIndex]
) -> DivergenceRecord | None:
    """What the compiled program computes wrong, where its code is there and can be executed in parts."""
    if not executes_code(task.options.backend):
        return None
    try:
        return divergence_on(
            parse_spec(task.options.backend).name, module, module, arguments, wrong, Budget()
        )
    except HlotoolError:
        return None


def compare_modules(
    task: Task, before: Module, after: Module, arguments: Sequence[Any], wanted: Verdict = Verdict.WRONG
) -> ModuleRecord | None:
    """What two small programs return for the same arguments, compared; None when one cannot run.

    Args:
        task: whose options decide.
        before: the right one.
        after: the other one.
        arguments: of both.
        wanted: the verdict that they are to show: where that is `unequal`, how far values are apart does not
            count.
    """
    try:
        one = compile_program("before", "", before, task.options.reference)
        other = compile_program("after", "", after, task.options.reference, one)
        row = compare_programs(one, other, arguments, task.options, task.module.title)
        return row.as_functions() if wanted is Verdict.UNEQUAL else row
    except HlotoolError:
        return None


def is_wrong(record: SpotRecord) -> bool:
    """Whether the two small programs differ, as the stages that they were cut from do."""
    return record.comparison is not None and record.comparison.verdict in DIFFERING


# Two programs that should compute the same, on several devices: as programs that run alone.
#
# What no device exchanges values in is a program for one of them. A program that was partitioned is compared
# with what the partitioner was given, on global arrays, or with another partitioned one, device by device.


def on_its_own(spot: Spot) -> Iterator[Spot]:
    """A spot as programs that can be run alone; several where it is not known on which device they differ.

    None where only the wrong one exchanges values: what the right one does there is not one program for all.
    """
    counts = own_arguments(spot.before), own_arguments(spot.after)
    if spot.copies == 1 or counts[0] > 1:
        yield spot
    elif counts == (1, 1):
        known: set[tuple[bytes, ...]] = set()
        for row in spot.arguments:
            key = tuple(array.tobytes() for array in arrays_in(row))
            if key not in known:
                known.add(key)
                yield Spot(for_one_device(spot.before), for_one_device(spot.after), row)


def whole_stages(
    before: Program, after: Program, arguments: Sequence[Any], sharding: Sharding | None = None
) -> Spot:
    """Two stages and the arguments of a replay, or where both are partitioned the parts of each device.

    Args:
        before: the right one.
        after: the wrong one.
        arguments: of the replay.
        sharding: of the result of `after`, where the dump has it.
    """
    copies = own_arguments(before.module)
    rows = before.runner.on_devices(arguments)
    stated = clone_module(after.module).module
    if sharding is not None and copies == 1:
        root = stated.entry.root
        root.attributes = {**root.attributes, "sharding": sharding}
    return Spot(before.module, stated, tuple(rows) if copies > 1 else tuple(arguments), copies)
