"""The terms of sums: what looks exact is so in every order only where the whole sum is.

A small integer, or a power of two, is the same in every legal execution, and so is a sum of such numbers. But
1e5 + 0.1 - 1e5 is 0.1 in one order and 0.1015625 in another one, although each of its large terms is exact:
the sums on the way are not. Sums of multiples of a unit u are exact in every order where no sum on the way
needs more digits than the accumulator has, that is, where the magnitudes add up to at most 2^digits · u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.numpy.noise import Noise, looks_exact
from hlotool.backends.numpy.rounding_errors import Error
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction

_Floats = npt.NDArray[np.float64]

#: Integers as wide as the floats, and the bits of the mantissa, by the floats' codes.
_MANTISSAS: Final[dict[str, tuple[type[np.unsignedinteger[Any]], int]]] = {
    "f": (np.uint32, 23),
    "d": (np.uint64, 52),
}


@dataclass(frozen=True, slots=True)
class PerturbTerms:
    """Random errors of the terms of a sum.

    Attributes:
        noise: which execution it is.
        error: of terms that do not look exact.
        late: relative error of those that do, where their sum is not exact in every order.
        digits: of the accumulator.
        length: terms of one sum at most.
        axes: dimensions of the operand that are summed; None where a sum may be of any of its elements.
        factor: the operand that the terms are multiplied by; None for a plain sum.
    """

    noise: Noise
    error: Error
    late: float
    digits: int
    length: int
    axes: tuple[int, ...] | None = None
    factor: int | None = None

    def __call__(self, value: Any, factor: Any = None) -> Any:
        """The changed terms; `factor` is what they are multiplied by, as it is."""
        changed = self.noise.perturbed(value, self.error.relative, self.error.zeros)
        is_plain = self.noise.member.seed is None or not value.size
        if is_plain or not looks_exact(value, self.error.zeros):
            return changed
        is_exact = self._are_exact(value, factor)
        if is_exact.all():
            return changed
        off = self.noise.perturbed(value, self.late, 0)
        return np.where(is_exact | (changed != value), changed, off)[()]

    def _are_exact(self, value: Array, factor: Array | None) -> npt.NDArray[np.bool_]:
        """For each element, in dimensions that broadcast: whether its sum is exact in every order."""
        magnitudes, units = _magnitudes(value), _units(value)
        with np.errstate(all="ignore"):
            if self.axes is None:
                total, unit = magnitudes.max(keepdims=True) * self.length, units.min(keepdims=True)
                count = np.count_nonzero(magnitudes, keepdims=True)
            else:
                total = magnitudes.sum(self.axes, keepdims=True)
                unit = units.min(self.axes, keepdims=True)
                count = np.count_nonzero(magnitudes, self.axes, keepdims=True)
            if factor is not None and factor.size:
                total = total * _magnitudes(factor).max()
                unit = unit * _units(factor).min()
            is_exact: npt.NDArray[np.bool_] = np.asarray(total <= unit * 2.0**self.digits)
        # Of a single term nothing has an order.
        return is_exact | (np.asarray(count) <= 1)


def summed_axes(instruction: Instruction) -> tuple[int, ...] | None:
    """The dimensions of the first operand along which terms are added up; None where that is not so plain."""
    match instruction.opcode:
        case "reduce":
            return instruction.integers("dimensions")
        case "dot":
            return instruction.integers("lhs_contracting_dims", ())
    return None


def _magnitudes(value: Array) -> _Floats:
    """Of complex numbers those of both parts together."""
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        own = np.asarray(value).astype(wide)
        return np.asarray(np.abs(own.real) + np.abs(own.imag))


def _units(value: Array) -> _Floats:
    """The largest power of two that each number is a multiple of; infinite for 0, NaN for NaN."""
    if value.dtype.kind == "c":
        parts = np.asarray(value)
        return np.minimum(_units(np.array(parts.real)), _units(np.array(parts.imag)))
    held = np.array(value, np.float64 if value.dtype.char not in _MANTISSAS else None, order="C", ndmin=1)
    kind, digits = _MANTISSAS[held.dtype.char]
    bits = held.view(kind)
    without_last = (bits & (bits - kind(1))).view(held.dtype)
    has_fraction = (bits & kind((1 << digits) - 1)) != 0
    with np.errstate(all="ignore"):
        unit = np.where(has_fraction, np.abs(held.astype(np.float64) - without_last), np.abs(held))
    return np.asarray(np.where(held == 0, np.inf, unit), np.float64).reshape(np.shape(value))
