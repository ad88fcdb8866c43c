"""One run of `run_hlo_module`: a program on both platforms, compared. Runs in a worker process."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hlotool.errors import BackendFailed, HlotoolError, InputDataError, Unsupported
from hlotool.inputs.captured import fit_arguments
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.arrays import dtype_of, flatten, from_literal, unflatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.printed_literals import typed_literal_text
from hlotool.ir.types import ArrayShape, leaves
from hlotool.parser.proto.executions import (
    ToolLiterals,
    as_literal,
    read_executions,
    write_executions,
)
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.program import Program, load_program, snapshot_program
from hlotool.runs.records import InputsRecord, ModuleRecord
from hlotool.runs.rows import Actual, compare_row, uncompared_row
from hlotool.runs.task import Task, failed_row
from hlotool.runs.trials import Trial, trials
from hlotool.sources.records import DumpModule
from hlotool.system.records import Record
from hlotool.system.worker import tell


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
    tested = program_of(task.module, options.backend)
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
        reference = program_of(task.module, options.reference)
        expected = reference.runner.run(trial.arguments).value
        seconds.append(time.monotonic() - began)
        row = compare_row(replay, reference, trial, expected, Actual.computed(tested, outcome))
    else:
        row = uncompared_row(replay, tested, trial, outcome.value)
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


def program_of(module: DumpModule, backend: str) -> Program:
    """The program of a file, compiled by a backend.

    Raises:
        Unsupported: the file has several programs, or none; otherwise as `load_program`.
    """
    stages = (*module.stages, *module.others)
    if len(stages) == 1:
        return load_program(module, stages[0], backend)
    if not stages and module.captures:
        return snapshot_program(module.captures[0], backend)
    raise Unsupported(f"{module.title}: {len(stages)} programs where there should be one")


def _trial(task: Run, module: Module) -> Trial:
    """What the program is run on.

    Raises:
        InputDataError: given or captured values do not fit it.
    """
    if task.given:
        execution = read_executions(task.given, "--input_literals_file")[0]
        if any(argument.has_elided for argument in execution.arguments):
            raise InputDataError("--input_literals_file: an argument has a shape, and no values")
        values = tuple(map(from_literal, execution.arguments))
        record = InputsRecord(origin="given", description="from literals")
        return Trial(fit_arguments(values, module, "--input_literals_file"), record)
    captures = () if task.is_fake else task.module.captures
    if captures or (task.is_random and not task.large_range):
        # XLA's tool knows of no arguments beside a file.
        owner = replace(task.module, captures=captures, arguments="")
        return next(trials(owner, module, task.options))
    seed = task.options.seed
    if not task.is_random:
        zeros = tuple(_zeros(parameter) for parameter in module.entry.parameters)
        return Trial(zeros, InputsRecord(origin="generated", description="all zero"))
    made = generate_inputs(module, seed)
    free = {(leaf.number, leaf.index) for leaf in made.descriptions if not leaf.rule}
    values = tuple(_enlarged(p, value, seed, free) for p, value in zip(module.entry.parameters, made.values))
    return Trial(
        values, InputsRecord(origin="generated", description=f"generated with seed {seed}", seed=seed)
    )


def _zeros(parameter: Instruction) -> Any:
    parts = [
        np.zeros(shape.dims, dtype_of(shape.element_type)) if isinstance(shape, ArrayShape) else None
        for _, shape in leaves(parameter.shape)
    ]
    return unflatten(parameter.shape, parts)


def _enlarged(parameter: Instruction, value: Any, seed: int, free: set[tuple[int, tuple[int, ...]]]) -> Any:
    """Floats of which nothing is demanded get exponents from the whole range of their type."""
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
