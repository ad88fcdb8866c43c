"""Comparisons and choices: by the pseudo-real value, equality by the residue modulo P."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.held import is_complex, parts
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import means
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.elementwise import for_sizes
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction

#: Direction → from (less, equal) to the answer, for numbers that are not NaN.
_ANSWERS: dict[str, Callable[[Array, Array], Array]] = {
    "LT": lambda less, same: less & ~same,
    "LE": lambda less, same: less | same,
    "GT": lambda less, same: ~(less | same),
    "GE": lambda less, same: ~less | same,
}


@means("compare")
def compare(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """a against b; NaN only differs, unless the order is total: there it is the largest."""
    direction = instruction.text("direction")
    trial = lowering.trial
    if is_complex(instruction.operands[0].shape):
        return for_sizes(lambda a, b: _equal_pairs(a, b) ^ (direction == "NE"), instruction)
    is_total = instruction.attributes.get("type") == "TOTALORDER"
    if direction in ("EQ", "NE"):
        return for_sizes(lambda a, b: _equal(a, b, is_total) ^ (direction == "NE"), instruction)
    if direction not in _ANSWERS:
        raise lowering.unsupported(instruction, f"comparison direction {direction}")
    answer = _ANSWERS[direction]
    return for_sizes(lambda a, b: _ordered(trial, answer, a, b, is_total), instruction)


def _equal(a: Words, b: Words, is_total: bool) -> Array:
    same = w.equal(a, b)
    return np.asarray(same if is_total else same & (a != w.NAN))


def _equal_pairs(a: Array, b: Array) -> Array:
    (real, imaginary), (other_real, other_imaginary) = parts(a), parts(b)
    return _equal(real, other_real, False) & _equal(imaginary, other_imaginary, False)


def _ordered(
    trial: Trial, answer: Callable[[Array, Array], Array], a: Words, b: Words, is_total: bool
) -> Array:
    same = w.equal(a, b)
    a_nan, b_nan = a == w.NAN, b == w.NAN
    if is_total:
        less = np.where(a_nan | b_nan, b_nan & ~a_nan, trial.less(a, b))
        return answer(less, same)
    return np.asarray(answer(trial.less(a, b), same) & ~(a_nan | b_nan))


@means("maximum")
def maximum(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The larger; NaN wins."""
    trial = lowering.trial
    return for_sizes(lambda a, b: trial.maximum(a, b), instruction)


@means("minimum")
def minimum(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The smaller; NaN wins."""
    trial = lowering.trial
    return for_sizes(lambda a, b: trial.minimum(a, b), instruction)


@means("clamp")
def clamp(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """min(max(low, x), high)."""
    trial = lowering.trial
    return for_sizes(lambda low, x, high: trial.minimum(trial.maximum(low, x), high), instruction)
