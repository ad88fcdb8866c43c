"""Scalar computations of two programs, compared instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.ir.module import Computation, Instruction


def embedded_difference(one: Instruction, other: Instruction) -> tuple[Instruction, Instruction] | None:
    """The first instructions of their scalar computations in which two operations differ; None if in none."""
    for left, right in zip(one.called, other.called):
        found = _computation_difference(left, right)
        if found is not None:
            return found
    return None


def _computation_difference(left: Computation, right: Computation) -> tuple[Instruction, Instruction] | None:
    for a, b in zip(left.instructions, right.instructions):
        if a.opcode != b.opcode or _operand_positions(left, a) != _operand_positions(right, b):
            return a, b
        if _plain_attributes(a) != _plain_attributes(b):
            return a, b
        if a.literal is not None and b.literal is not None:
            same: Callable[..., bool] = np.array_equal
            if not same(a.literal.array, b.literal.array):
                return a, b
    return None if len(left.instructions) == len(right.instructions) else (left.root, right.root)


def _operand_positions(computation: Computation, instruction: Instruction) -> list[int]:
    return [computation.instructions.index(o) for o in instruction.operands]


#: Attributes that say nothing about what is computed.
_BESIDE_THE_POINT = frozenset({"sharding", "frontend_attributes", "backend_config", "operand_precision"})


def same_operation(one: Instruction, other: Instruction) -> bool:
    """Whether two instructions compute the same of equal operands."""
    return (
        one.opcode == other.opcode
        and one.literal is None
        and _plain_attributes(one) == _plain_attributes(other)
        and embedded_difference(one, other) is None
    )


def _plain_attributes(instruction: Instruction) -> dict[str, object]:
    callees = set(instruction.called)
    return {
        name: value
        for name, value in instruction.attributes.items()
        if name not in _BESIDE_THE_POINT and not (callees and holds_computation(value))
    }


def holds_computation(value: object) -> bool:
    """Whether the value of an attribute is a computation or several."""
    return isinstance(value, Computation) or (
        isinstance(value, tuple) and any(isinstance(part, Computation) for part in value)
    )
