"""Comparisons and choices: by the pseudo-real value, equality by the residue modulo P."""

from __future__ import annotations

from hlotool.backends.field.held import is_complex, parts
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import means
from hlotool.backends.field.trial import DIRECTIONS, Trial
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.elementwise import for_sizes
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@means("compare")
def compare(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """a against b; NaN only differs, unless the order is total: there it is the largest."""
    direction = instruction.text("direction")
    trial = lowering.trial
    if direction not in DIRECTIONS:
        raise lowering.unsupported(instruction, f"comparison direction {direction}")
    if is_complex(instruction.operands[0].shape):
        return for_sizes(lambda a, b: _equal_pairs(trial, a, b) ^ (direction == "NE"), instruction)
    is_total = instruction.attributes.get("type") == "TOTALORDER"
    return for_sizes(lambda a, b: trial.compare(direction, a, b, is_total), instruction)


def _equal_pairs(trial: Trial, a: Array, b: Array) -> Array:
    real, imaginary = (trial.compare("EQ", x, y) for x, y in zip(parts(a), parts(b)))
    return real & imaginary


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
<<<<<<< HEAD
    low, x, high = instruction.operands
    is_above, is_below = (lowering.order(*pair) is Order.AT_MOST for pair in ((low, x), (x, high)))

    def clamped(low: Words, x: Words, high: Words) -> Words:
        raised = x if is_above else trial.maximum(low, x)
        return raised if is_below else trial.minimum(raised, high)

    return for_sizes(clamped, instruction)
=======
    return for_sizes(lambda low, x, high: trial.minimum(trial.maximum(low, x), high), instruction)
>>>>>>> field
