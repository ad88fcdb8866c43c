"""Comparisons, choices, sorting: by the rank of pseudo-real values; equality by the residue modulo P."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import call_means, means
from hlotool.backends.field.trial import DIRECTIONS, Trial
from hlotool.backends.field.values import is_complex, is_float, parts
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.comparators import SortKey
from hlotool.backends.numpy.elementwise import for_sizes
from hlotool.backends.numpy.kernels.annotation_calls import finds_largest
from hlotool.backends.numpy.kernels.sort import order_by_keys
from hlotool.backends.numpy.lanes import lanes, vectorised
from hlotool.backends.numpy.ordering import stable_order, take_along_last
from hlotool.backends.numpy.registry import RULES, Kernel
from hlotool.facts.scalar_form import ScalarForm, select_outputs
from hlotool.facts.signs import Order
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import TupleShape, array_shapes


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


#: From operands with the sorted dimension last to the order along it.
_Order: TypeAlias = Callable[[Sequence[Array]], Array]


@means("sort")
def sort(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """All operands along one dimension, stable; see the numpy backend's."""
    (axis,) = instruction.integers("dimensions")
    order = _order_of(instruction, lowering)

    def kernel(*operands: Array) -> tuple[Array, ...]:
        rows = [np.moveaxis(operand, axis, -1) for operand in operands]
        chosen = order(rows)
        return tuple(np.moveaxis(take_along_last(row, chosen), -1, axis) for row in rows)

    if isinstance(instruction.shape, TupleShape):
        return kernel
    return lambda operand: kernel(operand)[0]


def _order_of(instruction: Instruction, lowering: FieldLowering) -> _Order:
    less = lanes(instruction.computation("to_apply"), lowering)
    return order_by_keys(less, partial(_by_keys, lowering=lowering))


def _by_keys(form: ScalarForm, keys: Sequence[SortKey], lowering: FieldLowering) -> _Order:
    evaluate = vectorised(select_outputs(form, [key.value for key in keys]), lowering)
    trial = lowering.trial

    def order(rows: Sequence[Array]) -> Array:
        values = evaluate(*(row for row in rows for _ in range(2)))
        return stable_order([_ranks(trial, key, value) for key, value in zip(keys, values)])

    return order


def _ranks(trial: Trial, key: SortKey, values: Array) -> Array:
    """See `SortKey.ranks`."""
    if not key.value.element_type.is_floating:
        return key.ranks(values)
    numbers = trial.kappa.places(values)
    return ~numbers if key.descending else numbers


@means("topk")
def topk(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The `k` largest (or smallest) elements of the last dimension, in order, and their indices."""
    if not is_float(instruction.operands[0].shape):
        raise lowering.unsupported(instruction, "topk of complex numbers: they have no order")
    return _top(lowering.trial, instruction.integer("k"), instruction.flag("largest", True))


@call_means("TopK", "__gpu$TopK")
def topk_call(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """As `topk`; the called computation says whether the largest or the smallest are wanted."""
    if not is_float(instruction.operands[0].shape):
        return RULES["custom-call"](instruction, lowering)
    k = array_shapes(instruction.shape)[0].dims[-1]
    return _top(lowering.trial, k, finds_largest(instruction, lowering))


def _top(trial: Trial, k: int, largest: bool) -> Kernel:
    def kernel(operand: Words) -> tuple[Array, Array]:
        numbers = trial.kappa.places(operand)
        order = stable_order([~numbers if largest else numbers])[..., :k]
        return take_along_last(operand, order), order.astype(np.int32)

    return kernel
