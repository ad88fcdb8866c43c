"""Values that a compiler may have computed in place of the program, and rounded in their declared types.

A rewrite merges constants, folds whole tables, and multiplies by a reciprocal instead of dividing. The new
constants are rounded, so even an execution in wider types differs by that much. Where two versions of a
program are at hand, a constant that occurs in both was not touched.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlotool.ir.dtypes import Array
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, Shape, array_shapes

#: They pass values through computations: what they return is looked at inside.
_CALLERS = frozenset({"call", "conditional", "fusion", "while"})


def uncertain_values(module: Module, other: Module | None = None) -> frozenset[Instruction]:
    """Float instructions of `module` whose value a rewrite may have rounded anew.

    These are: constants that `other` does not have (all constants, without another version), what is computed
    from constants only, and quotients with such a divisor.
    """
    known = _constant_values(other) if other is not None else frozenset()
    found: set[Instruction] = set()
    for computation in module.computations:
        fixed: set[Instruction] = set()
        for instruction in computation.instructions:
            if _is_fixed(instruction, fixed):
                fixed.add(instruction)
                if _holds_floats(instruction.shape) and not _is_known(instruction, known):
                    found.add(instruction)
            elif instruction.opcode == "divide" and instruction.operands[1] in fixed:
                found.add(instruction)
    return frozenset(found)


def _is_fixed(instruction: Instruction, fixed: set[Instruction]) -> bool:
    """Whether its value is known to a compiler."""
    if instruction.opcode in ("constant", "iota"):
        return True
    if instruction.opcode in _CALLERS or not instruction.operands:
        return False
    return all(operand in fixed for operand in instruction.operands)


def _is_known(instruction: Instruction, known: frozenset[bytes]) -> bool:
    if instruction.opcode == "iota":
        return True
    return instruction.literal is not None and set(_keys(instruction.literal)) <= known


def _holds_floats(shape: Shape) -> bool:
    return any(part.element_type.is_inexact for part in array_shapes(shape))


def _constant_values(module: Module) -> frozenset[bytes]:
    literals = (i.literal for i in module.instructions() if i.literal is not None)
    return frozenset(key for literal in literals for key in _keys(literal))


def _keys(literal: Literal) -> Iterator[bytes]:
    """The float values of a literal, comparable between types and shapes."""
    for wide in float_values(literal):
        yield (wide[:1] if wide.size and np.all(wide == wide[0]) else wide).tobytes()


def float_values(literal: Literal) -> Iterator[Array]:
    """The float arrays of a literal that are not elided, each in one dimension, in f64 or c128."""
    if isinstance(literal.value, tuple):
        for element in literal.value:
            yield from float_values(element)
    elif literal.value is not None and _holds_floats(literal.shape):
        is_complex = isinstance(literal.shape, ArrayShape) and literal.shape.element_type.is_complex
        with np.errstate(all="ignore"):
            yield literal.value.astype(np.complex128 if is_complex else np.float64).reshape(-1)
