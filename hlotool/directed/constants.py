"""The scalar constants of a program: what its comparisons may be with."""

from __future__ import annotations

from typing import Final

import numpy as np

from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape

#: Constants that are larger say nothing that a parameter could be compared with.
_LARGEST: Final = 1e6


def scalar_constants(module: Module) -> list[float]:
    """The scalar constants of a program that are real numbers of moderate size, each once."""
    found: dict[float, None] = {}
    for instruction in module.instructions():
        literal = instruction.literal
        shape = instruction.shape
        if literal is None or literal.has_elided or not isinstance(shape, ArrayShape) or shape.rank:
            continue
        if shape.element_type.is_complex:
            continue
        value = float(np.asarray(literal.array).astype(np.float64))
        if abs(value) <= _LARGEST:
            found[value] = None
    return list(found)
