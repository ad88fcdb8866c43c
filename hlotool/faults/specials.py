"""NaN and negative zero get lost."""

from __future__ import annotations

from typing import Final

from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of, is_float
from hlotool.faults.kind import FaultKind
from hlotool.ir.module import Instruction

#: Numbers beyond it are clamped, as to the range of f16.
CLAMPED: Final = 6e4


def _nan_lost(edit: Edit, target: Instruction) -> None:
    edit.after()
    is_nan = edit.op("compare", target, target, direction="NE")
    edit.replace(edit.where(is_nan, edit.filled(0, array_of(target)), target))


def _zero_sign_lost(edit: Edit, target: Instruction) -> None:
    edit.after()
    zero = edit.filled(0, array_of(target))
    edit.replace(edit.where(edit.op("compare", target, zero, direction="EQ"), zero, target))


def _infinity_clamped(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    largest = edit.filled(CLAMPED, shape)
    edit.replace(edit.op("clamp", edit.filled(-CLAMPED, shape), target, largest, shape=shape))


KINDS = (
    FaultKind(
        "NaN lost", "a comparison that assumes that nothing is NaN", is_float, _nan_lost, "NaN", float("nan")
    ),
    FaultKind(
        "negative zero lost",
        "x + 0 introduced or removed without a look at -0",
        is_float,
        _zero_sign_lost,
        None,
        -0.0,
    ),
    FaultKind(
        "infinity clamped",
        "a clamp to the range of f16 in front of a conversion",
        is_float,
        _infinity_clamped,
        "infinity",
        float("inf"),
    ),
)
