"""Where numbers become too large on the way, what is NaN or infinite in the end is left open.

Compilers take exp(x) / exp(y) for exp(x - y), multiply in another order, or take a factor out of a sum: what
overflows in one way need not in another one, and infinity minus infinity, or times zero, is NaN. A replay
calls that `range` as far as it can show it. Here it is no question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.precision import largest_finite
from hlotool.errors import HlotoolError
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import ModuleRecord


def overflow_decides(row: ModuleRecord, module: Module, arguments: Sequence[Any]) -> bool:
    """Whether all that is wrong is NaN or infinite on one side, of numbers that may overflow on the way.

    Args:
        row: a comparison.
        module: the program.
        arguments: of one device.
    """
    wrong = [leaf for leaf in row.leaves if leaf.verdict is Verdict.WRONG]
    if not wrong or not all(leaf.nan_mismatches or leaf.inf_mismatches for leaf in wrong):
        return False
    probe = _Largest()
    try:
        NumpyBackend().compile(module).run(arguments, probe)
    except HlotoolError:
        return False  # It needs several devices, or calls what only a backend has.
    return probe.is_large


#: They hold what the program names, such as the infinity that a maximum begins with.
_NAMED = frozenset({"broadcast", "constant"})


class _Largest:
    """Looks for floats that are not finite, or so large that their square is not."""

    def __init__(self) -> None:
        self.is_large = False

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        shape = instruction.shape
        if self.is_large or instruction.opcode in _NAMED:
            return
        if not isinstance(shape, ArrayShape) or not shape.element_type.is_inexact:
            return
        kind = shape.element_type.real_part
        if kind is ElementType.F8E8M0FNU:
            return
        wide = np.asarray(value).astype(np.complex128 if shape.element_type.is_complex else np.float64)
        with np.errstate(all="ignore"):
            size = np.maximum(np.abs(wide.real), np.abs(wide.imag))
        # NaN is not within the limit, either.
        self.is_large = not bool((size <= np.sqrt(largest_finite(kind))).all())
