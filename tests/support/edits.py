"""Modules made different on purpose: renamed and reordered, or changed in one known instruction."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlotool.ir.arrays import Literal
from hlotool.ir.attributes import SliceDim
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import post_order, reachable


def disguised(module: Module, seed: int) -> Module:
    """The same program with other names, in another valid order."""
    rng = random.Random(seed)
    copy = clone_module(module).module
    for number, computation in enumerate(copy.computations):
        computation.name = f"c{number}_{rng.randrange(10**9)}"
        members = list(computation.instructions)
        rng.shuffle(members)
        computation.instructions = post_order(members)
        for number_inside, instruction in enumerate(computation.instructions):
            instruction.name = f"x{number_inside}_{rng.randrange(10**9)}"
    return copy


@dataclass(frozen=True)
class Edit:
    """A module with one changed instruction.

    Attributes:
        module: the changed copy.
        instruction: what was changed in it.
        original: what it was.
        kind: name of the edit.
    """

    module: Module
    instruction: Instruction
    original: Instruction
    kind: str


_OTHER = {
    "add": "subtract",
    "subtract": "add",
    "multiply": "divide",
    "divide": "multiply",
    "maximum": "minimum",
    "minimum": "maximum",
    "exponential": "tanh",
    "tanh": "exponential",
    "negate": "abs",
    "sine": "cosine",
    "rsqrt": "sqrt",
}
_DIRECTIONS = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT", "EQ": "NE", "NE": "EQ"}


def _opcode(instruction: Instruction) -> bool:
    other = _OTHER.get(instruction.opcode)
    if other is not None:
        instruction.opcode = other
    return other is not None


def _direction(instruction: Instruction) -> bool:
    direction = instruction.attributes.get("direction")
    if instruction.opcode != "compare" or direction not in _DIRECTIONS:
        return False
    instruction.attributes = {**instruction.attributes, "direction": _DIRECTIONS[str(direction)]}
    return True


def _swap(instruction: Instruction) -> bool:
    """Swap two operands that are not the same, where their order matters."""
    if instruction.opcode not in ("subtract", "divide", "select", "compare"):
        return False
    *first, a, b = instruction.operands
    if a is b or a.shape != b.shape:
        return False
    instruction.operands = (*first, b, a)
    return True


def _constant(instruction: Instruction) -> bool:
    shape, literal = instruction.shape, instruction.literal
    if literal is None or not isinstance(shape, ArrayShape) or not isinstance(literal.value, np.ndarray):
        return False
    if literal.value.dtype.kind not in "f":
        return False
    changed = (literal.value * 1.5 + 0.25).astype(literal.value.dtype)
    instruction.literal = Literal(shape, changed)
    return not np.array_equal(changed, literal.value, equal_nan=True)


def _slice(instruction: Instruction) -> bool:
    """Start and end one element earlier."""
    dims = instruction.attributes.get("slice")
    if instruction.opcode != "slice" or not isinstance(dims, tuple):
        return False
    for number, dim in enumerate(dims):
        if isinstance(dim, SliceDim) and dim.start > 0:
            moved = SliceDim(dim.start - 1, dim.limit - 1, dim.stride)
            slices = tuple(d for d in (*dims[:number], moved, *dims[number + 1 :]) if isinstance(d, SliceDim))
            instruction.attributes = {**instruction.attributes, "slice": slices}
            return True
    return False


EDITS: dict[str, Callable[[Instruction], bool]] = {
    "opcode": _opcode,
    "direction": _direction,
    "swap": _swap,
    "constant": _constant,
    "slice": _slice,
}


def edited(module: Module, seed: int, where: Callable[[Instruction], bool] | None = None) -> Edit | None:
    """A copy with one random instruction changed in one random way; None where nothing can be changed.

    Args:
        module: stays as it is.
        seed: decides what is changed.
        where: which instructions of the original may be changed; all when None.
    """
    rng = random.Random(seed)
    copies = clone_module(module)
    choices = [i for c in reachable(module.entry) for i in c.instructions if where is None or where(i)]
    rng.shuffle(choices)
    for original in choices:
        kinds = list(EDITS)
        rng.shuffle(kinds)
        for kind in kinds:
            if EDITS[kind](copies.instructions[original]):
                return Edit(copies.module, copies.instructions[original], original, kind)
    return None
