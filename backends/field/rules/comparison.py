"""Comparisons and choices: by the pseudo-real value, equality by the residue modulo P."""

from __future__ import annotations

from hlotool.analysis.signs import Order
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
    known = lowering.order(*instruction.operands)
    return for_sizes(lambda a, b: trial.compare(direction, a, b, is_total, known), instruction)


def _equal_pairs(trial: Trial, a: Array, b: Array) -> Array:
    real, imaginary = (trial.compare("EQ", x, y) for x, y in zip(parts(a), parts(b)))
    return real & imaginary


@means("maximum", "minimum")
def extremum(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The larger or smaller; NaN wins."""
    known = lowering.order(*instruction.operands)
    is_maximum = instruction.opcode == "maximum"
    if known is not None:
        takes_first = is_maximum is (known is Order.AT_LEAST)
        return for_sizes(lambda a, b: a if takes_first else b, instruction)
    trial = lowering.trial
    return for_sizes(
        lambda a, b: trial.kappa.maximum(a, b) if is_maximum else trial.kappa.minimum(a, b), instruction
    )


@means("clamp")
def clamp(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """min(max(low, x), high)."""
    trial = lowering.trial
    low, x, high = instruction.operands
    is_above, is_below = (lowering.order(*pair) is Order.AT_MOST for pair in ((low, x), (x, high)))

    def clamped(low: Words, x: Words, high: Words) -> Words:
        raised = x if is_above else trial.kappa.maximum(low, x)
        return raised if is_below else trial.kappa.minimum(raised, high)

    return for_sizes(clamped, instruction)
