"""Constants of which nothing is left once a compiler adds constants up.

1 - x + 1e-10 is computed as (1 + 1e-10) - x, and 1 + 1e-10 is 1 in f32. XLA: algebraic_simplifier.cc
(HandleAdd, HandleSubtract: constants of a sum are brought together), hlo_constant_folding.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from hlotool.facts.recognition import uniform
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import Users, users

_SUMS: Final = frozenset({"add", "subtract"})
#: Terms are looked for behind them.
_BEHIND: Final = opcodes_with(Trait.REGROUPS) | {"negate", "slice"}
#: So many terms of a sum are looked at.
_MOST_TERMS: Final = 64


def absorbed_constants(module: Module) -> set[float]:
    """The sizes of constants that do nothing but vanish beside another constant of the same sum."""
    vanish: set[float] = set()
    stay: set[float] = set()
    for computation in module.computations:
        readers = users(computation)
        found = _absorbed(computation)
        for instruction in computation.instructions:
            if instruction.opcode == "constant" and (size := _size(instruction)):
                is_gone = _only_in(instruction, found, readers)
                (vanish if is_gone else stay).add(size)
    return vanish - stay


def _absorbed(computation: Computation) -> dict[Instruction, set[Instruction]]:
    """By operand that is a constant and vanishes: the sums in which it does."""
    found: dict[Instruction, set[Instruction]] = {}
    for total in computation.instructions:
        shape = total.shape
        if (
            total.opcode not in _SUMS
            or not isinstance(shape, ArrayShape)
            or not shape.element_type.is_floating
        ):
            continue
        terms = dict(_terms(total))
        dtype: Any = dtype_of(shape.element_type)
        largest = np.asarray(max(terms.values(), default=0.0), dtype)
        for operand in total.operands:
            size = terms.get(operand)
            if size and largest + np.asarray(size, dtype) == largest:
                found.setdefault(operand, set()).add(total)
    return found


def _terms(total: Instruction) -> Iterator[tuple[Instruction, float]]:
    """The constants that a sum adds, through further sums and what moves elements, with their sizes."""
    pending, seen = list(total.operands), 0
    while pending and seen < _MOST_TERMS:
        term, seen = pending.pop(), seen + 1
        if size := _size(term):
            yield term, size
        elif term.opcode in _SUMS:
            pending += term.operands
        elif term.opcode in _BEHIND:
            pending.append(term.operands[0])


def _size(instruction: Instruction) -> float:
    """The absolute value of a float constant with one value, broadcast or not; 0 of anything else."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_floating:
        return 0.0
    value = uniform(instruction)
    return abs(float(value)) if value is not None and np.isfinite(float(value)) else 0.0


def _only_in(constant: Instruction, found: Mapping[Instruction, set[Instruction]], readers: Users) -> bool:
    """Whether all that reads a constant, by broadcasts or directly, are sums in which it vanishes."""
    if not readers[constant]:
        return False
    return all(
        reader in found.get(constant, ()) or (_size(reader) > 0 and _only_in(reader, found, readers))
        for reader in readers[constant]
    )
