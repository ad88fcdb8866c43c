"""Scalar computations of two programs, compared instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.ir.module import Computation, Instruction


def embedded_difference(one: Instruction, other: Instruction) -> Instruction | None:
    """The first instruction of a scalar computation of `other` that is not as in `one`; None if all are."""
    for left, right in zip(one.called, other.called):
        found = _computation_difference(left, right)
        if found is not None:
            return found
    return None


def _computation_difference(left: Computation, right: Computation) -> Instruction | None:
    for a, b in zip(left.instructions, right.instructions):
        if a.opcode != b.opcode or _operand_positions(left, a) != _operand_positions(right, b):
            return b
        if a.literal is not None and b.literal is not None:
            same: Callable[..., bool] = np.array_equal
            if not same(a.literal.array, b.literal.array):
                return b
    return None if len(left.instructions) == len(right.instructions) else right.root


def _operand_positions(computation: Computation, instruction: Instruction) -> list[int]:
    return [computation.instructions.index(o) for o in instruction.operands]
