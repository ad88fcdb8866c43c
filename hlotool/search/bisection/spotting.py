"""The instructions to blame, found in a worker process and sent home as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import msgspec

from hlotool.errors import HlotoolError, Unsupported
from hlotool.findings.provenance import source_of_output
from hlotool.findings.verdict import DIFFERING, Verdict
from hlotool.ir.attributes import Sharding
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Module
from hlotool.ir.partitioning import own_arguments
from hlotool.ir.types import ShapeIndex
from hlotool.locate.cut import Spot, cut_out
from hlotool.locate.locator import Found, Search
from hlotool.locate.records import DivergenceRecord
from hlotool.locate.report import divergence_record, first_divergence
from hlotool.locate.store import Budget
from hlotool.locate.surroundings import with_surroundings
from hlotool.replay.devices.looking import leaves_of, subjects
from hlotool.replay.devices.result_sharding import stated_sharding
from hlotool.replay.divergence_row import OTHER_FUNCTIONS, is_wide_enough, open_exact_search
from hlotool.replay.program import Program, compile_program
from hlotool.replay.records import ModuleRecord
from hlotool.replay.task import Task
from hlotool.search.bisection.codegen import level_of, opcodes_within, suspects
from hlotool.search.bisection.records import PairRecord, SpotRecord
from hlotool.search.bisection.stage_worker import stage_program, stage_trials
from hlotool.search.comparing import compare_programs
from hlotool.search.reduction.case import case_of, for_one_device, observe
from hlotool.search.reduction.subgraph import cut_out as cut_out_of
from hlotool.search.strip_positions import remove_positions, without_positions
from hlotool.values.npz import arrays_in, as_values, npz_bytes

#: What workers call.
FUNCTION = "hlotool.search.bisection.spotting:stage_spot"
RESULT_FUNCTION = "hlotool.search.bisection.spotting:result_spot"

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
    kernel = found[0]
    trial = next(t for t in stage_trials(question.task) if t.result is not None)
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
        program=origin.module.to_text(),
        program_inputs=npz_bytes(trial.arguments, copies),
        outputs=npz_bytes(as_values(trial.result, copies), copies),
    )


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
        sharding: of the result of `after`, where the dump tells.
    """
    copies = own_arguments(before.module)
    rows = before.runner.on_devices(arguments)
    stated = clone_module(after.module).module
    if sharding is not None and copies == 1:
        root = stated.entry.root
        root.attributes = {**root.attributes, "sharding": sharding}
    return Spot(before.module, stated, tuple(rows) if copies > 1 else tuple(arguments), copies)
