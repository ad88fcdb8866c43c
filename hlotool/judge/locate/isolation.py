"""Each instruction alone on a backend that does not show what happens inside of a program.

The reference executes the program and knows what every instruction reads. The backend gets these values, one
instruction after the other: what it computes from right operands must be right, whatever went wrong before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from hlotool.backends.base import Value, notes_of, target_of
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.ties import ObservedTies, ties_in, unstable_sorts
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendTimeout, HlotoolError, Unsupported
from hlotool.facts.alignment.similarity import Graph, Table, fingerprints
from hlotool.facts.dataflow import join_leaves, leaf_facts
from hlotool.facts.result_facts import Facts, Rounding, origin_of
from hlotool.inputs.frames import Frame, Node, resolve, value_in
from hlotool.inputs.recorded_values import Budget
from hlotool.ir.arrays import flatten
from hlotool.ir.edit_calls import cone, extract
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, ShapeIndex, leaves, strip_layouts
from hlotool.judge.comparison import compare_values
from hlotool.judge.locate.blame import (
    around,
    deviation_record,
    difference,
    neighbourhood,
    source_in,
    text_in,
)
from hlotool.judge.locate.locator import NotFound
from hlotool.judge.locate.recording import Execution, execute, on_one_device
from hlotool.judge.locate.report import first_divergence
from hlotool.judge.metrics import Metrics, measure
from hlotool.judge.records import DivergenceRecord, OperandRecord
from hlotool.judge.rules.freedoms import freedoms_on
from hlotool.judge.tolerance import derive, leaf_scale
from hlotool.judge.verdicts import Verdict

_REFERENCE = "numpy"

#: They compute nothing, or talk to somebody who is not there.
_NOT_RUN = opcodes_with(Trait.FORWARDS, Trait.ORDERS, Trait.STRUCTURE, Class.HOST) | {"bitcast", "rng"}
#: Rounding grows in them from step to step.
_REPEATING = opcodes_with(Trait.CONTROL_FLOW)
#: Iterations of a wrong loop that are looked into.
_MOST_ITERATIONS = 8


def divergence_on(
    backend: str,
    reference: Module,
    tested: Module,
    arguments: Sequence[Value],
    outputs: Sequence[ShapeIndex],
    budget: Budget,
) -> DivergenceRecord:
    """Find what a backend computes wrong, or what is wrong in the program that it was given.

    Where the two programs differ on the reference already, the fault is in the HLO, and the instruction is
    looked for there. Else every instruction of the tested program is run alone on the backend, on the values
    that the reference has for its operands.

    Args:
        backend: in question.
        reference: the program as it should be, for one device.
        tested: what the backend was given; the same program, or another stage of it.
        arguments: that both are run on.
        outputs: shape indices of results that differ.
        budget: how much may be kept, and how many seconds each part of the search may take.

    Raises:
        NotFound: every instruction is right by itself.
        OutOfTime: recording an execution takes too long.
        Unsupported: the calls of a program cannot be flattened, or it cannot be executed.
    """
    if wrong := _wrong_already(reference, tested, arguments, outputs):
        sides = on_one_device(reference, arguments), on_one_device(tested, arguments)
        return first_divergence(*sides, wrong, budget)
    with closing(execute(on_one_device(tested, arguments), budget)) as execution:
        isolation = Isolation(execution, backend, budget.seconds)
        found = isolation.first()
        note = f"instructions run alone on {backend}, each on right operands: {isolation.compared}"
        others = "all are right: the fault lies in how they work together"
        if isolation.skipped:
            note += f"; {isolation.skipped} could not be"
            others = "those that could be are right"
        if found is None and isolation.doubtful is None:
            raise NotFound(f"{note}; {others}")
        return _record(execution, isolation, found, len(outputs), note)


def _wrong_already(
    reference: Module, tested: Module, arguments: Sequence[Value], outputs: Sequence[ShapeIndex]
) -> list[ShapeIndex]:
    """Outputs of two programs that differ on the reference by more than a tolerance."""
    if tested is reference:
        return []
    engine = get_backend(_REFERENCE)
    expected, actual = (engine.compile(module).run(arguments) for module in (reference, tested))
    shapes = [module.entry.root.shape for module in (reference, tested)]
    facts = join_leaves(leaf_facts(reference), leaf_facts(tested))
    compared = compare_values(shapes[0], expected, actual, actual_shape=shapes[1], facts=facts)
    wrong = {leaf.index for leaf in compared.leaves if leaf.verdict is Verdict.WRONG}
    return [index for index in outputs if index in wrong]


def _record(
    execution: Execution, isolation: Isolation, certain: Isolated | None, outputs: int, note: str
) -> DivergenceRecord:
    found = certain or isolation.doubtful
    assert found is not None
    record = record_of_one(execution, found.node, "wrong" if certain else "suspected", [note, *found.notes])
    return msgspec.structs.replace(record, local=deviation_record(found.metrics), outputs=outputs)


def record_of_one(
    execution: Execution, node: Node, finding: str, notes: Sequence[str], doubt: float | None = None
) -> DivergenceRecord:
    """The record of an instruction of a program that is compared with itself; see there for the arguments."""
    source = source_in(execution, node)
    text = text_in(execution, node)
    operands = [
        OperandRecord(
            instruction=execution.originals[operand].name,
            shape=str(strip_layouts(operand.shape)),
            state="as expected",
        )
        for operand in node.instruction.operands
    ]
    return DivergenceRecord(
        finding=finding,
        source=source,
        text=text,
        expected_source=source,
        expected_text=text,
        around=around(execution, node),
        operands=operands,
        doubt=doubt,
        notes=list(notes),
        instructions=[source.instruction],
        neighbours=neighbourhood(execution, node),
    )


@dataclass(frozen=True, slots=True)
class Isolated:
    """An instruction that computes something wrong from right operands.

    Attributes:
        node: the wrong part of its result.
        metrics: the difference.
        notes: what the backend says of how it ran.
    """

    node: Node
    metrics: Metrics | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alone:
    """What came of an instruction that was run alone.

    Attributes:
        instruction: of the program as it was read.
        is_wrong: its result is further from the reference than rounding explains.
        error: why it could not be run or compared.
    """

    instruction: Instruction
    is_wrong: bool = False
    error: HlotoolError | None = None


class Isolation:
    """Runs the instructions of an executed program alone.

    Args:
        execution: by the reference.
        backend: in question.
        seconds: after which nothing new is begun.

    Attributes:
        compared: how many instructions were compared.
        skipped: how many could not be: the backend refuses them alone, or a value was not kept.
        doubtful: the first loop that is wrong while nothing in it is: rounding may have grown in it.
    """

    def __init__(self, execution: Execution, backend: str, seconds: float) -> None:
        self.compared = self.skipped = 0
        self.doubtful: Isolated | None = None
        self._execution = execution
        self._backend = get_backend(backend)
        self._end = time.monotonic() + seconds

    def first(self) -> Isolated | None:
        """The first instruction, in the order of the text, that is wrong by itself."""
        return self._first_in(self._execution.entry)

    def _first_in(self, frame: Frame) -> Isolated | None:
        for instruction in frame.computation.instructions:
            if time.monotonic() > self._end:
                return None
            if instruction.opcode in _NOT_RUN:
                continue
            found = self._run(frame, instruction)
            if found is None:
                continue
            inside = next(self._inside(frame, instruction), None)
            if inside is not None or instruction.opcode not in _REPEATING:
                return inside or found
            self.doubtful = self.doubtful or found
        return None

    def _inside(self, frame: Frame, instruction: Instruction) -> Iterator[Isolated]:
        """What is wrong in the computations that a wrong loop, branch, call or fusion runs."""
        callees = frame.callees.get(instruction, ())
        for callee in callees:
            if callee.iteration < _MOST_ITERATIONS and (found := self._first_in(callee)):
                yield found
        if instruction.opcode == "fusion":
            yield from self._within(frame, instruction)

    def _within(self, frame: Frame, fusion: Instruction) -> Iterator[Isolated]:
        """What is wrong inside of a fusion whose instructions are right alone.

        Not all backends can say: XLA does not show what its kernels compute on the way.
        """
        cut = extract(self._execution.module, [fusion], [fusion])
        inside = {i.name: i for i in next(fusion.called).instructions}
        copies = {i.name for i in next(cut.copies[fusion].called).instructions}
        seen: dict[str, Any] = {}

        def see(instruction: Instruction, value: Value) -> None:
            if instruction.name in copies:
                seen[instruction.name] = value

        try:
            arguments = [value_in(frame, operand) for operand in cut.inputs]
            self._backend.compile(cut.module).run(arguments, see)
        except HlotoolError:
            return
        callee = frame.callees[fusion][0]
        for name, value in seen.items():
            needed = extract(self._execution.module, cone([inside[name]]), [inside[name]]).module
            if found := self._difference(callee, inside[name], needed, value):
                yield found
                return

    def each(self) -> Iterator[Alone]:
        """Every distinct instruction that is run step by step, at the first run of its computation.

        Two are the same if they do the same to operands of the same shapes; fusions are run as a whole.
        """
        yield from self._each_in(self._execution.entry, Table(), set())

    def _each_in(self, frame: Frame, table: Table, seen: set[int]) -> Iterator[Alone]:
        for instruction in frame.computation.instructions:
            if instruction.opcode in _NOT_RUN:
                continue
            if instruction.opcode != "fusion":
                for callee in frame.callees.get(instruction, ())[:1]:
                    yield from self._each_in(callee, table, seen)
            cut = extract(self._execution.module, [instruction], [instruction]).module
            form = fingerprints(Graph(cut), table).values[cut.entry.root]
            if form in seen:
                continue
            seen.add(form)
            original = self._execution.originals.get(instruction, instruction)
            if time.monotonic() > self._end:
                yield Alone(original, error=BackendTimeout(self._backend.name, "no time was left for it"))
                continue
            try:
                found = self._alone(frame, instruction)
            except HlotoolError as error:
                yield Alone(original, error=error)
            else:
                yield Alone(original, is_wrong=found is not None)

    def _run(self, frame: Frame, instruction: Instruction) -> Isolated | None:
        """The instruction's first wrong part; None where all is right, or cannot be told."""
        try:
            found = self._alone(frame, instruction)
        except HlotoolError:
            self.skipped += 1
            return None
        self.compared += 1
        return found

    def _alone(self, frame: Frame, instruction: Instruction) -> Isolated | None:
        """The instruction's first wrong part, None where all is right; raises as the backend does."""
        if not any(value is not None for _, _, value in _parts(frame, instruction)):
            raise Unsupported("its value was not kept")
        cut = extract(self._execution.module, [instruction], [instruction])
        arguments = [value_in(frame, operand) for operand in cut.inputs]
        executable = self._backend.compile(cut.module)
        result = executable.run(arguments)
        found = self._difference(frame, instruction, cut.module, result)
        if found is not None and _is_order_of_ties(cut.module, arguments, result):
            return None
        return None if found is None else replace(found, notes=notes_of(executable))

    def _difference(
        self, frame: Frame, instruction: Instruction, module: Module, result: Value
    ) -> Isolated | None:
        parts = {index: part for index, _, part in flatten(instruction.shape, result)}
        unit = freedoms_on(target_of(self._backend), module).product.unit
        for facts, (index, shape, expected) in zip(leaf_facts(module), _parts(frame, instruction)):
            if expected is None or not isinstance(shape, ArrayShape) or facts.random is not None:
                continue
            actual = np.asarray(parts[index])
            if unit:
                facts = structs.replace(
                    facts, rounding=Rounding(unit, ElementType.F16, origin_of(instruction))
                )
            if differ(expected, actual, shape, facts):
                node = Node(frame, instruction, index)
                return Isolated(node, difference(expected, actual, node))
        return None


def _is_order_of_ties(module: Module, arguments: Sequence[Value], result: Value) -> bool:
    """Whether the reference returns the same where it orders ties of unstable sorts as the result does."""
    if not unstable_sorts(module):
        return False
    engine = NumpyBackend()
    usual = engine.compile(module).run(arguments)
    with ties_in(ObservedTies(module, usual, result)):
        executable = engine.compile(module)
    expected = executable.run(arguments)
    compared = compare_values(module.entry.root.shape, expected, result, facts=leaf_facts(module))
    return compared.verdict is not Verdict.WRONG


def _parts(frame: Frame, instruction: Instruction) -> Iterator[tuple[ShapeIndex, Any, Any]]:
    """The leaves of an instruction's value, each with its shape and what the reference has there."""
    for index, shape in leaves(instruction.shape):
        yield (
            index,
            shape,
            resolve(frame, instruction, index).value if isinstance(shape, ArrayShape) else None,
        )


def differ(expected: Any, actual: Any, shape: ArrayShape, facts: Facts) -> bool:
    """Whether two values are further apart than the rounding of what they depend on explains."""
    if expected.size != actual.size:
        return False
    tolerance = derive(shape.element_type, facts, leaf_scale(expected, actual))
    return measure(expected.reshape(actual.shape), actual, shape.element_type, tolerance).mismatched > 0
