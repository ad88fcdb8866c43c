"""f64 as a TPU has it: a pair of f32, the number rounded to f32 and what that leaves.

So it has the range of f32: what is larger is infinite, or NaN where a function goes on with it; below 2^-102
the rest is denormal, so that digits are lost; below 2^-126 the number is. Measured with libtpu 0.0.42; the
arithmetic: Joldes, Muller, Popescu, "Tight and rigorous error bounds for basic building blocks of double-word
arithmetic", 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy.executions.changes import flushed
from hlotool.backends.numpy.executions.departures import DepartingBackend
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel, Reading
from hlotool.facts.float_order import flush_threshold
from hlotool.facts.result_facts import does_arithmetic
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ElementType

#: Infinite at zero or at one, in every type.
_POLES = opcodes_with(Trait.SINGULAR)


@dataclass(frozen=True, slots=True)
class Pairs:
    """How pairs are made.

    Attributes:
        flushes: denormal numbers of f32 are zero, and a reciprocal root is the root of a reciprocal.
        overflow: what a number becomes that f32 cannot hold; the sign is kept.
    """

    flushes: bool = False
    overflow: float = np.inf

    def overflowed(self, value: Any) -> Any:
        """The value with `overflow` in place of infinity: what f64 cannot hold, f32 cannot, either."""
        if getattr(value, "dtype", None) != np.float64:
            return value
        return np.where(np.isinf(value), np.copysign(self.overflow, value), value)[()]

    def __call__(self, value: Any) -> Any:
        """The value with all f64 in it as pairs."""
        if isinstance(value, tuple):
            return tuple(map(self, value))
        if getattr(value, "dtype", None) != np.float64:
            return value
        with np.errstate(all="ignore"):
            leading = value.astype(np.float32)
            rest = np.where(np.isfinite(leading), value - leading, 0).astype(np.float32)
            if self.flushes:
                tiny = flush_threshold(ElementType.F32)
                leading, rest = flushed(leading, tiny), flushed(rest, tiny)
            pair = leading.astype(np.float64) + rest
            return np.where(np.isfinite(value), self.overflowed(pair), pair)[()]


class PairsBackend(DepartingBackend):
    """The numpy backend with f64 as pairs of f32."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs

    def _lowering(self, module: Module, grid: DeviceGrid = ONE_DEVICE) -> Lowering:
        return _PairsLowering(self._pairs, module, grid)


class _PairsLowering(Lowering):
    """Makes pairs of what kernels read and return."""

    def __init__(self, pairs: Pairs, module: Module, grid: DeviceGrid) -> None:
        super().__init__(module, grid)
        self._pairs = pairs

    def kernel(self, instruction: Instruction) -> Kernel:
        pairs, kernel = self._pairs, super().kernel(instruction)
        if isinstance(kernel, Reading):
            return kernel
        if isinstance(kernel, Calling):
            function = kernel.function
            return Calling(lambda values, run: pairs(function(list(map(pairs, values)), run)))
        if instruction.opcode == "rsqrt" and pairs.flushes and instruction.array_type is ElementType.F64:
            return lambda x: pairs(np.sqrt(pairs(1 / pairs(x))))
        usual = kernel
        may_overflow = does_arithmetic(instruction) and instruction.opcode not in _POLES

        def made(*values: Any) -> Any:
            read = list(map(pairs, values))
            result = usual(*read)
            if may_overflow and all(np.isfinite(value).all() for value in read):
                return pairs(pairs.overflowed(result))
            return pairs(result)

        return made
