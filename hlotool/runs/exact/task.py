"""Compares two stages. Runs in a worker process, prints nothing, returns a plain record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from hlotool.backends.base import DevicesBackend, Probe, Value
from hlotool.errors import BackendFailed, HlotoolError, Location, Unsupported
from hlotool.inputs.adversarial.sets import in_words
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.judge.failures import error_record
from hlotool.judge.locate.report import divergence_record
from hlotool.rewrite.scale.records import AUTO
from hlotool.runs.exact.compare import compare
from hlotool.runs.exact.parting import open_search
from hlotool.runs.exact.points import Options
from hlotool.runs.exact.records import ProvedRecord, proved_record
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.sampled import Sampled, on_further_sets
from hlotool.runs.leaves import save_inputs
from hlotool.runs.program import Program, compile_program, load_program
from hlotool.runs.rows import doubt
from hlotool.runs.scaling import fitting_pair
from hlotool.runs.trials import load_arguments
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.resources import work_done

#: A search has so many parts that may each take the time of its budget: the point, the recordings of both
#: programs there, at other points and on numbers, and what is tried.
_PARTS = 10


@dataclass(frozen=True, slots=True)
class ProveTask:
    """A pair of programs.

    Attributes:
        name: of the pair.
        owners: the modules of the dumps that they belong to.
        reference: the first program.
        tested: the second one.
        trials: random points.
        seed: of the first point.
        time_limit: in seconds.
        inputs: file whose integers and preds are taken in place of generated ones, at the first point.
        further_sets: whether generated integers are followed by those of further sets.
        scale: what becomes of programs that are too large for this machine.
    """

    name: str
    owners: tuple[DumpModule, DumpModule]
    reference: Stage
    tested: Stage
    trials: int
    seed: int
    time_limit: float
    inputs: str | None = None
    further_sets: bool = True
    scale: str = AUTO


def prove(task: ProveTask) -> ProvedRecord:
    """What is known of the pair; errors of its programs become part of the record.

    Raises:
        MemoryError: some step needed more memory than there is.
    """
    began = time.monotonic()
    left, right = str(task.reference.source), str(task.tested.source)
    try:
        owners, scaled = fitting_pair(*task.owners, task.reference, task.tested, task.scale, task.time_limit)
        if scaled is not None and task.inputs is not None:
            raise Unsupported("given values are of the full sizes (--scale never)", location=Location(right))
        reference = load_program(owners[0], task.reference, only_read())
        tested = load_program(owners[1], task.tested, only_read(), reference)
        given = _given(task, reference)
        options = Options(task.trials, task.seed, task.time_limit, given, meets=True)
        before = work_done()
        result = compare(reference, tested, options)
        sampled = Sampled(result)
        is_sampled = task.further_sets and not options.given
        options = _showing(options, result)
        if is_sampled and result.is_equal:
            sampled = on_further_sets(reference, tested, result, options, work_done() - before)
            result, options = sampled.result, sampled.options or options
        if result.relation is Relation.UNEQUAL and (why := doubt(reference.module, tested.module)):
            raise Unsupported(why, location=Location(right))
        generated = len(reference.module.generated)
        record = proved_record(task.name, left, right, result, generated)
        record = _with_sets(record, sampled, reference.runner.copies)
        record = msgspec.structs.replace(record, scaled=None if scaled is None else scaled.record)
        is_function = result.relation is Relation.UNEQUAL and not result.structural
        return _with_divergence(record, reference, tested, result, options) if is_function else record
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return failed_record(task, error, time.monotonic() - began)


def _showing(options: Options, result: ExactResult) -> Options:
    """The options of the point that shows a difference, where numbers have sizes of their own there."""
    seeds = [leaf.witness.seed for leaf in result.leaves if leaf.witness is not None]
    if not (result.around or result.meeting) or not seeds:
        return options
    return replace(
        options, trials=1, seed=seeds[0], around=result.around, meeting=result.meeting, most_points=1
    )


def _with_divergence(
    record: ProvedRecord, reference: Program, tested: Program, result: ExactResult, options: Options
) -> ProvedRecord:
    """The record with the instruction at which the programs part; the search may take what time is left."""
    outputs = [leaf.index for leaf in result.leaves if leaf.relation is Relation.UNEQUAL]
    budget = Budget(seconds=max(0.0, options.time_limit - result.seconds) / _PARTS)
    try:
        search, differing = open_search(reference, tested, outputs, options, budget)
        with closing(search):
            found = divergence_record(search, search.first(differing), differing)
    except HlotoolError as error:
        return msgspec.structs.replace(record, divergence_missing=str(error))
    # Neither program is known to be the right one.
    return msgspec.structs.replace(record, divergence=msgspec.structs.replace(found, finding="suspected"))


def _with_sets(record: ProvedRecord, sampled: Sampled, copies: int) -> ProvedRecord:
    """The record with the further sets, and the one that shows programs to be unequal, which is saved."""
    record = msgspec.structs.replace(record, further_sets=sampled.sets)
    one = sampled.shown_by
    if one is None:
        return record
    file = save_inputs(record.name, one.values, copies)
    return msgspec.structs.replace(record, shown_by=in_words(one), inputs=file)


def _given(task: ProveTask, reference: Program) -> Sequence[Sequence[Any]]:
    """The arguments of the first point that are not drawn; raises InputDataError where they do not fit."""
    if task.inputs is None:
        return ()
    return [load_arguments(task.inputs, reference.module, reference.runner.copies)]


def failed_record(task: ProveTask, error: HlotoolError, seconds: float = 0.0) -> ProvedRecord:
    """The record of a pair of which nothing is known for `error`."""
    record = error_record(error)
    return ProvedRecord(
        name=task.name,
        left=str(task.reference.source),
        right=str(task.tested.source),
        relation=Relation.REFUSED.value,
        reason=record.message,
        error=record,
        seconds=seconds,
    )


def programs(reference: Module, tested: Module) -> tuple[Program, Program]:
    """Two modules as the sides of a comparison; raises as `compile_program`."""
    one = compile_program("", reference.path or reference.name, reference, only_read())
    return one, compile_program("", tested.path or tested.name, tested, only_read(), one)


def compare_modules(reference: Module, tested: Module, *, trials: int = 2, seed: int = 0) -> ExactResult:
    """Two modules compared in this process; raises as `compile_program`."""
    return compare(*programs(reference, tested), Options(trials, seed, meets=True))


class _OnlyRead:
    """Stands for the backend of programs that are read to be compiled by the field alone."""

    name: str = "field"
    version: str = "field"

    def compile(self, module: Module) -> _OnlyRead:
        """Nothing is compiled."""
        return self

    def compile_devices(self, module: Module, grid: DeviceGrid) -> _OnlyRead:
        """Nothing is compiled."""
        return self

    def run(self, arguments: Any, probe: Probe | None = None) -> Value:
        """Nothing can be run."""
        raise Unsupported("a program that was only read")

    def run_devices(self, arguments: Any, probes: Any = None) -> list[Value]:
        """Nothing can be run."""
        raise Unsupported("a program that was only read")


def only_read() -> DevicesBackend:
    """In place of a backend, for programs that are read here and compiled by the field."""
    return _OnlyRead()
