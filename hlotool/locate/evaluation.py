"""Parts of a recorded program computed again with another value in some place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from hlotool.backends.base import Executable, Value
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape, subshape
from hlotool.ir.walk import reachable
from hlotool.locate.frames import Node, Parts, operand_nodes, value_in

#: What cannot be taken out of its program and run alone.
_NOT_ALONE = frozenset({"while", "conditional", "call", "fusion", "parameter", "rng", "infeed", "recv"})


class Evaluator:
    """Computes single instructions on the reference, each compiled once."""

    def __init__(self) -> None:
        self._compiled: dict[Instruction, Executable | None] = {}
        self._called: dict[Computation, Executable] = {}

    def apply(self, instruction: Instruction, operands: Sequence[Value]) -> Any:
        """The value of an instruction of array operands; None where it cannot be computed alone."""
        if instruction not in self._compiled:
            self._compiled[instruction] = _compiled(instruction)
        executable = self._compiled[instruction]
        if executable is None:
            return None
        try:
            return executable.run(operands)
        except HlotoolError:
            return None

    def called(self, computation: Computation, argument: Node) -> Any:
        """What a computation of one parameter returns for a value; None where it cannot be run."""
        try:
            value = value_in(argument.frame, argument.instruction)
            if computation not in self._called:
                alone = Module("alone", reachable(computation), computation)
                self._called[computation] = get_backend("numpy").compile(alone)
            return self._called[computation].run([value])
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
        known: dict[Node, tuple[Any, bool]] = {place: (value, True)}
        stack = [root]
        while stack:
            node = stack[-1]
            if node in known:
                stack.pop()
                continue
            operands = operand_nodes(node) if node in inside else []
            waiting = [operand for operand in operands if operand not in known]
            if waiting:
                stack += waiting
                continue
            known[stack.pop()] = self._again(node, [known[operand] for operand in operands])
        found, is_changed = known[root]
        return found if is_changed else None

    def _again(self, node: Node, operands: Sequence[tuple[Any, bool]]) -> tuple[Any, bool]:
        """The value of a node, and whether it depends on the change."""
        if not any(is_changed for _, is_changed in operands):
            return node.value, False
        values = [value for value, _ in operands]
        if any(value is None or isinstance(value, Parts) for value in values):
            return None, True
        whole = self.apply(node.instruction, values)
        for i in node.index:
            whole = whole[i] if isinstance(whole, tuple) else None
        return whole, True


def _compiled(instruction: Instruction) -> Executable | None:
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
        return get_backend("numpy").compile(Module("alone", reachable(entry), entry))
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
