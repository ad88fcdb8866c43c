"""What operations on bits make of ranges of their operands' values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import ml_dtypes
import numpy as np

from hlotool.analysis.machine_arithmetic import Operands
from hlotool.analysis.machine_range import MachineRange, of_integers, of_type
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Floats whose order is that of their bits, as long as they have no sign.
_IEEE: Final = frozenset({ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64})


def _is_pred(instruction: Instruction) -> bool:
    return instruction.element_type is ElementType.PRED


def bits_and(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """A mask without the sign bit bounds what it lets through."""
    if _is_pred(instruction):
        return of_integers(min(o.low for o in operands), min(o.high for o in operands))
    bounds = [o.high for o in operands if o.low >= 0]
    return of_integers(0, min(bounds)) if bounds else None


def bits_or(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """Bits are added to either side, none that neither may have."""
    if _is_pred(instruction):
        return of_integers(max(o.low for o in operands), max(o.high for o in operands))
    if any(o.low < 0 for o in operands):
        return None
    most = 0
    for operand in operands:
        most |= int(operand.low) if operand.is_point else _ones(operand)
    return of_integers(max(o.low for o in operands), most)


def bits_xor(_: Instruction, operands: Operands) -> MachineRange | None:
    """No bit that neither side may have."""
    if any(o.low < 0 for o in operands):
        return None
    return of_integers(0, max(_ones(o) for o in operands))


def _ones(operand: MachineRange) -> int:
    """All bits that numbers up to the largest one may have."""
    return (1 << int(operand.high).bit_length()) - 1


def bits_not(instruction: Instruction, operands: Operands) -> MachineRange:
    """Counted from the other end."""
    (a,) = operands
    if _is_pred(instruction):
        return of_integers(1 - a.high, 1 - a.low)
    ones = int(of_type(instruction.element_type).high) if instruction.element_type.is_unsigned else -1
    return of_integers(ones - a.high, ones - a.low)


def shift_right(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """Nothing grows; what is shifted by all bits or more is 0."""
    value, amount = operands
    if value.low < 0:
        return None
    if not amount.is_point or amount.low < 0:
        return replace(value, low=0)
    step = min(int(amount.low), instruction.element_type.bits)
    return of_integers(int(value.low) >> step, int(value.high) >> step)


def bit_count(instruction: Instruction, _: Operands) -> MachineRange:
    """Of the bits of a type."""
    return of_integers(0, instruction.element_type.bits)


def bits_as_float(instruction: Instruction, operands: Operands) -> MachineRange | None:
    """Integers without a sign, taken for the bits of floats of as many: they keep their order."""
    (a,), source, target = operands, instruction.operands[0].element_type, instruction.element_type
    if target not in _IEEE or not source.is_integer or source.bits != target.bits or a.low < 0:
        return None
    info: Any = ml_dtypes.finfo(dtype_of(target))  # type: ignore[no-untyped-call]
    kind = np.dtype(f"u{target.bits // 8}")
    infinity = int(np.asarray(np.inf, dtype_of(target)).view(kind))
    if a.high > infinity:
        return None
    low, high = (
        float(np.asarray(int(end), kind).view(dtype_of(target)).astype(np.float64)) for end in (a.low, a.high)
    )
    # Denormals may become 0.
    return MachineRange(
        low if low >= float(info.smallest_normal) else 0, high, nan=False, negative_zero=False
    )
