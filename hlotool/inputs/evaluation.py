"""Parts of a recorded program computed again with another value in some place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from hlotool.backends.base import Executable, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.inputs.frames import Compile, Node, Parts, operand_nodes, value_in
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, subshape
from hlotool.ir.walk import reachable

#: What cannot be taken out of its program and run alone.
_NOT_ALONE = (
    opcodes_with(Trait.CONTROL_FLOW, Trait.INLINED)
    | opcodes_with(Trait.UNDETERMINED) & opcodes_with(Trait.SIDE_EFFECT)
    | {"parameter"}
)


class Evaluator:
    """Computes single instructions as the executions did that they are of, each compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[Compile, Instruction], Executable | None] = {}
        self._called: dict[tuple[Compile, Computation], Executable] = {}

    def apply(self, node: Node, operands: Sequence[Value]) -> Any:
        """The value of an operation on other operands; None where it cannot be computed alone."""
        executable = self._executable(node)
        if executable is None:
            return None
        try:
            return executable.run(operands)
        except HlotoolError:
            return None

    def _executable(self, node: Node) -> Executable | None:
        key = node.frame.trace.compile, node.instruction
        if key not in self._compiled:
            self._compiled[key] = _compiled(*key)
        return self._compiled[key]

    def called(self, computation: Computation, argument: Node) -> Any:
        """What a computation of one parameter returns for a value; None where it cannot be run."""
        try:
            value = value_in(argument.frame, argument.instruction)
            key = argument.frame.trace.compile, computation
            if key not in self._called:
                alone = Module("alone", reachable(computation), computation)
                self._called[key] = argument.frame.trace.compile(alone)
            return self._called[key].run([value])
        except HlotoolError:
            return None

    def changed(self, root: Node, place: Node, value: Any, inside: Collection[Node]) -> Any:
        """The value of `root` if `place` had another value; None where that cannot be computed.

        Args:
            root: what is computed again.
            place: what is changed.
            value: that it has instead.
            inside: nodes between the two; what lies outside of them stays as it is.
        """
        way = self.way(root, place, inside)
        return None if way is None else way.value(value)

    def way(self, root: Node, place: Node, inside: Collection[Node]) -> Way | None:
        """The way from `place` to `root`, for many values; None where none leads there or a step is closed.

        Args:
            root: what is computed again.
            place: what is changed.
            inside: nodes between the two; what lies outside of them stays as it is.
        """
        depends = {place: True}
        steps: list[_Step] = []
        stack = [root]
        while stack:
            node = stack[-1]
            if node in depends:
                stack.pop()
                continue
            operands = operand_nodes(node) if node in inside else []
            waiting = [operand for operand in operands if operand not in depends]
            if waiting:
                stack += waiting
                continue
            depends[node] = any(depends[operand] for operand in operands)
            if depends[node]:
                if self._executable(node) is None:
                    return None
                steps.append(_Step(node, operands, [depends[operand] for operand in operands]))
        return Way(self, place, root, steps) if depends[root] else None


class OnReference:
    """Computes single instructions on the reference, of no recorded execution; each is compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[Instruction, Executable | None] = {}

    def apply(self, instruction: Instruction, operands: Sequence[Value]) -> Any:
        """The value of an instruction of array operands; None where it cannot be computed alone."""
        if instruction not in self._compiled:
            self._compiled[instruction] = _compiled(NumpyBackend().compile, instruction)
        executable = self._compiled[instruction]
        try:
            return None if executable is None else executable.run(operands)
        except HlotoolError:
            return None


class _Step(Struct, frozen=True, eq=False):
    """An operation that is computed again, what it reads, and which of that depends on the change."""

    node: Node
    operands: Sequence[Node]
    changes: Sequence[bool]


class Way(Struct, frozen=True, eq=False):
    """The operations between a place and a root, in an order of execution.

    Attributes:
        evaluator: computes them.
        place: what is changed.
        root: what is computed again.
        steps: all that depends on the one and makes the other; the root is the last.
    """

    evaluator: Evaluator
    place: Node
    root: Node
    steps: Sequence[_Step]

    def value(self, value: Any) -> Any:
        """The value of the root if the place had `value`; None where that cannot be computed."""
        known = {self.place: value}
        for step in self.steps:
            values: list[Any] = [
                known[operand] if changes else operand.value
                for operand, changes in zip(step.operands, step.changes)
            ]
            if any(value is None or isinstance(value, Parts) for value in values):
                return None
            whole = self.evaluator.apply(step.node, values)
            for i in step.node.index:
                whole = whole[i] if isinstance(whole, tuple) else None
            if whole is None:
                return None
            known[step.node] = whole
        return known[self.root]


def _compiled(compile_alone: Compile, instruction: Instruction) -> Executable | None:
    """A program of one instruction, which takes its operands as parameters."""
    is_flat = all(isinstance(operand.shape, ArrayShape) for operand in instruction.operands)
    if instruction.opcode in _NOT_ALONE or not instruction.operands or not is_flat:
        return None
    parameters = [
        Instruction(f"p{number}", "parameter", operand.shape, parameter_number=number)
        for number, operand in enumerate(instruction.operands)
    ]
    root = Instruction(
        instruction.name, instruction.opcode, instruction.shape, tuple(parameters), instruction.attributes
    )
    entry = Computation("entry", [*parameters, root], root)
    try:
        return compile_alone(Module("alone", reachable(entry), entry))
    except HlotoolError:
        return None


def fitted(value: Any, node: Node, device: int = 0) -> Any:
    """A value in the type and the dimensions of a node; None where it has another number of elements.

    Args:
        value: of another node, or the parts of it on several devices.
        node: that it should be the value of.
        device: of which the part is taken.
    """
    own = part_of(node.value, device)
    value = part_of(value, device)
    shape = subshape(node.instruction.shape, node.index)
    if own is None or value is None or not isinstance(shape, ArrayShape):
        return None
    is_like = value.dtype == own.dtype or {value.dtype.kind, own.dtype.kind} <= {"f", "V"}
    if value.size != own.size or not is_like:
        return None
    return np.ascontiguousarray(value.astype(own.dtype)).reshape(own.shape)


def part_of(value: Any, device: int) -> Any:
    """What a device has of a value."""
    return value[device] if isinstance(value, Parts) else value
