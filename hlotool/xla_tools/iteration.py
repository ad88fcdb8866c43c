"""One run of `run_hlo_module`: a program on both platforms, compared. Runs in a worker process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.dump.loading import read_execution
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import BackendFailed, HlotoolError, InputDataError, Unsupported
from hlotool.findings.records import Record
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction, Module
from hlotool.ir.printing.literals import typed_literal_text
from hlotool.ir.types import ArrayShape, leaves
from hlotool.parse.proto.tool_literals import ToolLiterals, as_literal, write_executions
from hlotool.replay.options import RunOptions
from hlotool.replay.program import Program, load_program, snapshot_program
from hlotool.replay.records import InputsRecord, ModuleRecord
from hlotool.replay.rows import Actual, compare_row, lonely_row
from hlotool.replay.task import Task, failed_row
from hlotool.replay.trials import Trial
from hlotool.values.flatten import from_literal, unflatten
from hlotool.values.generate import generate_inputs
from hlotool.workers.worker import tell


@dataclass(frozen=True, slots=True)
class Run:
    """One iteration.

    Attributes:
        module: of the file.
        options: backends, tolerance and seed.
        has_reference: whether there is anything to compare with.
        given: the arguments, as a RunHloModuleLiterals of one execution; empty where they are made.
        is_fake: the arguments of a snapshot are not taken.
        is_random: they are random, else zero.
        large_range: random floats of all magnitudes.
        prints: literals are wanted as text.
        keeps: literals are wanted as a proto.
    """

    module: DumpModule
    options: RunOptions
    has_reference: bool
    given: bytes = b""
    is_fake: bool = False
    is_random: bool = True
    large_range: bool = False
    prints: bool = False
    keeps: bool = False


class Ran(Record, frozen=True, kw_only=True):
    """What came of it.

    Attributes:
        row: the comparison, or why there is none.
        skipped: why the reference did not run; empty where it did, or was not asked for.
        seconds: on the test platform, and on the reference; as many as ran.
        arguments: as text, where literals are printed.
        result: of the test platform, likewise.
        reference: of the reference platform, likewise.
        literals: all of them, as a RunHloModuleLiterals; empty where they are not kept.
    """

    row: ModuleRecord
    skipped: str = ""
    seconds: list[float] = []
    arguments: list[str] = []
    result: str = ""
    reference: str = ""
    literals: bytes = b""


def run(task: Run) -> Ran:
    """Run and compare; the user's errors become a row.

    Raises:
        MemoryError: there is not enough of it.
        BackendFailed: this process is of no more use.
    """
    began = time.monotonic()
    try:
        return _run(task)
    except HlotoolError as error:
        if isinstance(error, BackendFailed) and error.here:
            raise
        return Ran(row=failed_row(Task(task.module, task.options), error, time.monotonic() - began))


def _run(task: Run) -> Ran:
    options, replay = task.options, Task(task.module, task.options)
    began = time.monotonic()
    tested = _program(task, options.backend)
    if tested.runner.copies > 1:
        raise Unsupported("run_hlo_module runs programs for one device; hlotool run takes this one")
    trial = _trial(task, tested.module)
    tell("running on the test platform")
    outcome = tested.runner.run(trial.arguments)
    seconds = [time.monotonic() - began]
    root = tested.module.entry.root
    expected: Any = None
    skipped = ""
    if root.opcode == "custom-call":
        skipped = f"for a custom call {root.custom_call_target}"
    if task.has_reference and not skipped:
        tell("running on the reference platform")
        began = time.monotonic()
        reference = _program(task, options.reference)
        expected = reference.runner.run(trial.arguments).value
        seconds.append(time.monotonic() - began)
        row = compare_row(replay, reference, trial, expected, Actual.computed(tested, outcome, sum(seconds)))
    else:
        row = lonely_row(replay, tested, trial, outcome.value)
    literals = _literals(tested, trial, outcome.value, expected)
    return Ran(
        row=row,
        skipped=skipped,
        seconds=seconds,
        arguments=[typed_literal_text(one) for one in literals.arguments] if task.prints else [],
        result=typed_literal_text(literals.result) if task.prints and literals.result else "",
        reference=typed_literal_text(literals.reference) if task.prints and literals.reference else "",
        literals=write_executions([literals]) if task.keeps else b"",
    )


def _program(task: Run, backend: str) -> Program:
    stage = only_stage(task.module)
    if stage is not None:
        return load_program(task.module, stage, backend)
    return snapshot_program(task.module.captures[0], backend)


def only_stage(module: DumpModule) -> Stage | None:
    """The stage of a file; None where its program is that of a snapshot.

    Raises:
        Unsupported: the file has several, or none.
    """
    stages = (*module.stages, *module.others)
    if len(stages) == 1:
        return stages[0]
    if not stages and module.captures:
        return None
    raise Unsupported(f"{module.title}: {len(stages)} programs where there should be one")


def _trial(task: Run, module: Module) -> Trial:
    if task.given:
        from hlotool.parse.proto.tool_literals import read_executions

        execution = read_executions(task.given, "--input_literals_file")[0]
        values = tuple(map(from_literal, execution.arguments))
        return _checked(module, values, InputsRecord(origin="given", description="from literals"))
    if task.module.captures and not task.is_fake:
        capture = task.module.captures[0]
        values = tuple(map(from_literal, read_execution(capture).arguments[0]))
        record = InputsRecord(origin="captured", description=f"captured in {capture.source.name}")
        return _checked(module, values, record)
    if not task.is_random:
        values = tuple(_zeros(parameter) for parameter in module.entry.parameters)
        return Trial(values, InputsRecord(origin="generated", description="all zero"))
    seed = task.options.seed
    made = generate_inputs(module, seed)
    record = InputsRecord(origin="generated", description=f"generated with seed {seed}", seed=seed)
    if not task.large_range:
        return Trial(made.values, record)
    free = {(leaf.number, leaf.index) for leaf in made.descriptions if not leaf.rule}
    values = tuple(_enlarged(p, value, seed, free) for p, value in zip(module.entry.parameters, made.values))
    return Trial(values, record)


def _checked(module: Module, values: tuple[Any, ...], record: InputsRecord) -> Trial:
    """A trial on values from a file, which must fit.

    Raises:
        InputDataError: they do not.
    """
    parameters = module.entry.parameters
    if len(values) != len(parameters):
        raise InputDataError(f"{record.description}: {len(values)} arguments, {len(parameters)} parameters")
    for parameter, value in zip(parameters, values):
        for index, shape, array in _arrays(parameter, value):
            if array.dtype != dtype_of(shape.element_type) or array.ndim != len(shape.dims):
                where = f"parameter {parameter.parameter_number}{''.join(f'[{i}]' for i in index)}"
                raise InputDataError(
                    f"{record.description}: {where} is {shape.logical_text()}, got {array.dtype}{array.shape}"
                )
    return Trial(values, record)


def _arrays(parameter: Instruction, value: Any) -> Iterator[tuple[tuple[int, ...], ArrayShape, Any]]:
    from hlotool.values.flatten import flatten

    try:
        for index, shape, array in flatten(parameter.shape, value):
            if isinstance(shape, ArrayShape):
                yield index, shape, np.asarray(array)
    except TypeError as error:
        raise InputDataError(f"parameter {parameter.parameter_number}: {error}") from error


def _zeros(parameter: Instruction) -> Any:
    parts = [
        np.zeros(shape.dims, dtype_of(shape.element_type)) if isinstance(shape, ArrayShape) else None
        for _, shape in leaves(parameter.shape)
    ]
    return unflatten(parameter.shape, parts)


def _enlarged(parameter: Instruction, value: Any, seed: int, free: set[tuple[int, tuple[int, ...]]]) -> Any:
    """Floats of which nothing is demanded get exponents from the whole range of their type."""
    from hlotool.values.flatten import flatten

    number = parameter.parameter_number or 0
    parts = []
    for index, shape, array in flatten(parameter.shape, value):
        if isinstance(shape, ArrayShape) and shape.element_type.is_floating and (number, index) in free:
            rng = np.random.default_rng([seed, number, *index, 1])
            array = _of_all_magnitudes(shape, np.shape(array), rng)
        parts.append(array)
    return unflatten(parameter.shape, parts)


def _of_all_magnitudes(shape: ArrayShape, dims: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Sign times two to a uniform power, from the smallest normal number to the largest number."""
    import ml_dtypes

    dtype = dtype_of(shape.element_type)
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    low, high = np.log2(float(limits.tiny)), np.log2(float(limits.max))
    magnitudes = np.exp2(rng.uniform(low, high, dims))
    with np.errstate(all="ignore"):
        return np.asarray(np.copysign(magnitudes, rng.uniform(-1, 1, dims)).astype(dtype))


def _literals(program: Program, trial: Trial, value: Any, expected: Any) -> ToolLiterals:
    shape = program.module.entry.root.shape
    arguments = zip(program.module.entry.parameters, trial.arguments)
    return ToolLiterals(
        tuple(as_literal(parameter.shape, argument) for parameter, argument in arguments),
        as_literal(shape, value),
        as_literal(shape, expected) if expected is not None else None,
    )
