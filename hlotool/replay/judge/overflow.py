"""Which instruction overflows: an infinity from finite operands that are merely too large.

Poles do not count: log(0), 1 / 0 and their kin are infinite in every type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import INLINED
from hlotool.backends.base import Value
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.numerics.contributions import does_arithmetic

#: Infinite at zero or at one.
_POLES = opcodes_with(Trait.SINGULAR)


class OverflowFinder:
    """The probe of an execution of `module`, arguments included.

    Attributes:
        found: the first instruction that overflows, None where none does.
    """

    def __init__(self, module: Module) -> None:
        self.found: Instruction | None = None
        self._finite: dict[Instruction, bool] = {}
        self._calls = CallGraph(module)

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
            return
        finite = self._finite[instruction] = bool(np.isfinite(value).all())
        if not finite and self.found is None and self._overflows(instruction, value):
            self.found = instruction

    def _overflows(self, instruction: Instruction, value: Any) -> bool:
        if instruction.opcode in _POLES or not bool(np.isinf(value).any()):
            return False
        if not (does_arithmetic(instruction) or instruction.opcode == "convert"):
            return False
        return all(map(self._is_finite, instruction.operands))

    def _is_finite(self, instruction: Instruction) -> bool:
        if instruction in self._finite:
            return self._finite[instruction]
        if instruction.literal is not None and isinstance(instruction.literal.value, np.ndarray):
            value = instruction.literal.value
            return value.dtype.kind in "biu" or bool(np.isfinite(value.astype(np.complex128)).all())
        if instruction.opcode == "parameter":
            callers = [c for c in self._calls.callers[self._calls.home[instruction]] if c.opcode in INLINED]
            return bool(callers) and self._is_finite(callers[-1].operands[instruction.parameter_number or 0])
        return True
