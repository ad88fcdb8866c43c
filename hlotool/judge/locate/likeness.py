"""How alike two values are, and two scalar computations; how significant it is that values are equal.

Particular values are hardly equal to others by chance; zeros and ones are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from hlotool.backends.field.values import compared, is_marked
from hlotool.facts import thresholds
from hlotool.facts.float_order import epsilon
from hlotool.inputs.frames import Parts
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, Shape


def distance(one: Any, other: Any) -> float:
    """The largest difference over the largest magnitude; infinite for other shapes, types or non-numbers.

    Integers and truth values are apart by 1 or not at all, exact words infinitely or not at all.
    """
    a, b = np.asarray(one), np.asarray(other)
    if a.shape != b.shape or (a.dtype != b.dtype and not (is_float(a) and is_float(b))):
        return math.inf
    if a.size == 0 or a.tobytes() == b.tobytes():
        return 0.0
    if is_marked(a):
        return 0.0 if np.array_equal(compared(a), compared(b)) else math.inf
    if not is_float(a):
        return float(bool((a != b).any()))
    wide = np.complex128 if np.iscomplexobj(a) else np.float64
    return _float_distance(a.astype(wide), b.astype(wide))


def is_float(array: Array) -> bool:
    """Whether it is of floats, narrow and complex ones included."""
    try:
        ml_dtypes.finfo(array.dtype)  # type: ignore[no-untyped-call]
    except ValueError:
        return False
    return True


def _float_distance(a: Array, b: Array) -> float:
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if same.all():
            return 0.0
        finite = np.isfinite(a) & np.isfinite(b)
        if not (finite | same).all():
            return math.inf
        magnitude = float(np.abs(a[finite]).max(initial=0.0))
        apart = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    return apart / magnitude if magnitude else math.inf


def rounding(shape: Shape, units: float) -> float:
    """The distance that rounding may make, in units of the epsilon of an array's type; 0 for integers."""
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_inexact:
        return 0.0
    return units * epsilon(shape.element_type)


def rounding_of_one(shape: Shape) -> float:
    """The distance that two roundings of one operation may make."""
    return rounding(shape, thresholds.ONE_OPERATION.value)


def is_uniform(value: Any) -> bool:
    """Whether it is not known, is empty, or is the same everywhere: nothing distinguishes it."""
    if value is None:
        return True
    first = value[0] if isinstance(value, Parts) else value
    return not first.size or bool((first == first.flat[0]).all())


def significant_bits(value: Any) -> int:
    """How many bits the different elements of an array need, without zeros at their ends."""
    first = np.asarray(value[0] if isinstance(value, Parts) else value)
    parts = (first.real, first.imag) if first.dtype.kind == "c" else (first,)
    elements = np.unique(np.abs(np.stack(parts).astype(np.float64)))
    mantissas = np.frexp(elements[np.isfinite(elements)])[0]
    whole = (mantissas * 2.0**53).astype(np.uint64)
    return int(sum(53 - _zeros_at_the_end(int(each)) for each in whole if each))


def _zeros_at_the_end(number: int) -> int:
    return (number & -number).bit_length() - 1


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
