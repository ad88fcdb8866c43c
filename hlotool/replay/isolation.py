"""Each instruction alone on a backend that does not show what happens inside of a program.

The reference executes the program and knows what every instruction reads. The backend gets these values, one
instruction after the other: what it computes from right operands must be right, whatever went wrong before.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.alignment.graph import Graph
from hlotool.alignment.ports import Ports
from hlotool.analysis.flow import INLINED
from hlotool.backends.base import TOKEN, Value
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.ir.edit_extract import cone, extract
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves
from hlotool.ir.walk import branches
from hlotool.numerics.dataflow import leaf_facts
from hlotool.numerics.metrics import Metrics, measure
from hlotool.replay.agreement import Relation, one_operation, related
from hlotool.replay.execution import Execution
from hlotool.replay.recording import Iteration
from hlotool.values.flatten import flatten, unflatten

#: They compute nothing, or talk to somebody who is not there.
_NOT_RUN = frozenset(
    {
        "add-dependency",
        "after-all",
        "bitcast",
        "constant",
        "domain",
        "get-tuple-element",
        "infeed",
        "opt-barrier",
        "outfeed",
        "parameter",
        "recv",
        "recv-done",
        "rng",
        "send",
        "send-done",
        "tuple",
    }
)
#: Rounding grows in them from step to step.
_REPEATING = frozenset({"while", "call", "conditional"})
#: Iterations of a wrong loop that are looked into.
_MOST_ITERATIONS = 8


@dataclass(frozen=True, slots=True)
class Isolated:
    """An instruction that computes something wrong from right operands.

    Attributes:
        instruction: of the flattened program.
        iteration: in which, one number per loop around it.
        index: of the wrong part of its result.
        metrics: the difference.
    """

    instruction: Instruction
    iteration: Iteration
    index: ShapeIndex
    metrics: Metrics


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
        self._graph = Graph(execution.module)
        self._ports = Ports(self._graph)
        self._backend = get_backend(backend)
        self._end = time.monotonic() + seconds

    @property
    def graph(self) -> Graph:
        """Of the flattened program."""
        return self._graph

    def first(self) -> Isolated | None:
        """The first instruction, in the order of the text, that is wrong by itself."""
        return self._first_in(self._execution.module.entry, ())

    def _first_in(self, computation: Computation, iteration: Iteration) -> Isolated | None:
        for instruction in computation.instructions:
            if time.monotonic() > self._end:
                return None
            if instruction.opcode in _NOT_RUN:
                continue
            found = self._run(instruction, iteration)
            if found is None:
                continue
            inside = next(self._inside(instruction, iteration), None)
            if inside is not None or instruction.opcode not in _REPEATING:
                return inside or found
            self.doubtful = self.doubtful or found
        return None

    def _inside(self, instruction: Instruction, iteration: Iteration) -> Iterator[Isolated]:
        """What is wrong in the computations that a wrong loop, branch, call or fusion runs."""
        runs: list[tuple[Computation, Iteration]] = []
        if instruction.opcode == "while":
            condition, body = instruction.computation("condition"), instruction.computation("body")
            for number in range(_MOST_ITERATIONS):
                runs += [(condition, (*iteration, number)), (body, (*iteration, number))]
        elif instruction.opcode == "conditional":
            runs += [(branch, iteration) for branch in branches(instruction)]
        elif instruction.opcode in INLINED:
            runs += [(callee, iteration) for callee in instruction.called]
        for computation, inside in runs:
            found = self._first_in(computation, inside)
            if found is not None:
                yield found
        if instruction.opcode == "fusion":
            yield from self._within(instruction, iteration)

    def _within(self, fusion: Instruction, iteration: Iteration) -> Iterator[Isolated]:
        """What is wrong inside of a fusion whose instructions are right alone.

        Not all backends can say: XLA shows nobody what its kernels compute on the way.
        """
        cut = extract(self._execution.module, [fusion], [fusion])
        arguments = [self._value(operand, iteration) for operand in cut.inputs]
        inside = {i.name: i for i in next(fusion.called).instructions}
        copies = {i.name for i in next(cut.copies[fusion].called).instructions}
        seen: dict[str, Any] = {}

        def see(instruction: Instruction, value: Value) -> None:
            if instruction.name in copies:
                seen[instruction.name] = value

        try:
            self._backend.compile(cut.module).run(arguments, see)
        except HlotoolError:
            return
        for name, value in seen.items():
            original = inside[name]
            needed = extract(self._execution.module, cone([original]), [original]).module
            expected = dict(self._parts(original, iteration))
            if found := self._difference(original, iteration, needed, expected, value):
                yield found
                return

    def _run(self, instruction: Instruction, iteration: Iteration) -> Isolated | None:
        """The instruction's first wrong part; None where all is right, or cannot be told."""
        cut = extract(self._execution.module, [instruction], [instruction])
        known = [self._value(operand, iteration) for operand in cut.inputs]
        arguments = [value for value in known if value is not None]
        expected = dict(self._parts(instruction, iteration))
        if not expected or len(arguments) < len(known):
            self.skipped += 1
            return None
        try:
            result = self._backend.compile(cut.module).run(arguments)
        except HlotoolError:
            self.skipped += 1
            return None
        self.compared += 1
        return self._difference(instruction, iteration, cut.module, expected, result)

    def _difference(
        self,
        instruction: Instruction,
        iteration: Iteration,
        module: Module,
        expected: dict[ShapeIndex, Any],
        result: Value,
    ) -> Isolated | None:
        for facts, (index, part, leaf) in zip(leaf_facts(module), flatten(instruction.shape, result)):
            if index not in expected or not isinstance(part, ArrayShape) or facts.random is not None:
                continue
            right, actual = expected[index], np.asarray(leaf)
            if related(right, part, actual, part, facts) is Relation.DIFFER:
                tolerance = one_operation(part.element_type, right, actual)
                metrics = measure(right, actual, part.element_type, tolerance)
                return Isolated(instruction, iteration, index, metrics)
        return None

    def _value(self, operand: Instruction, iteration: Iteration) -> Any:
        """What the reference has for an operand; None when some part of it is not known."""
        parts = dict(self._parts(operand, iteration))
        arrays = [index for index, part in leaves(operand.shape) if isinstance(part, ArrayShape)]
        if any(index not in parts for index in arrays):
            return None
        value: Any = unflatten(operand.shape, [parts.get(index, TOKEN) for index, _ in leaves(operand.shape)])
        return value

    def _parts(self, instruction: Instruction, iteration: Iteration) -> Iterator[tuple[ShapeIndex, Any]]:
        """The arrays of an instruction's value that the reference has."""
        recording = self._execution.recording
        for index, part in leaves(instruction.shape):
            node = self._ports.node(self._ports.of(instruction, index))
            samples = recording.samples.get(node) if node is not None else None
            if node is None or not samples or not isinstance(part, ArrayShape):
                continue
            value = recording.value(node, iteration[: len(next(iter(samples)))])
            if value is not None:
                yield index, _in_dims(value, part)


def _in_dims(value: Any, shape: ArrayShape) -> Any:
    return value if shape.is_dynamic or value.shape == shape.dims else value.reshape(shape.dims)
