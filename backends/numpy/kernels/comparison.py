"""Comparisons and choices."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.elementwise import Function, elementwise, for_sizes
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.masks import choose
from hlotool.backends.numpy.ordering import DIRECTIONS, SIGN_MAGNITUDE, total_order_keys
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@lowers("compare")
def compare(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a against b.

    Floats compare as IEEE says (NaN only NE everything), or with `type=TOTALORDER` by sign and magnitude of
    their bits: -NaN < -inf < … < -0 < +0 < … < inf < NaN. Complex numbers know EQ and NE only.
    XLA: operation_semantics.md#compare.
    """
    direction = instruction.text("direction")
    if direction not in DIRECTIONS:
        raise lowering.unsupported(instruction, f"comparison direction {direction}")
    function = DIRECTIONS[direction]
    if instruction.attributes.get("type") == "TOTALORDER":
        return _total_order(instruction, lowering, function)
    equality = function if direction in ("EQ", "NE") else None
    return elementwise(
        instruction, lowering, pred=function, integer=function, floating=function, complexes=equality
    )


def _total_order(instruction: Instruction, lowering: Lowering, function: Function) -> Kernel:
    def keyed(a: Array, b: Array) -> Any:
        return function(total_order_keys(a), total_order_keys(b))

    element_type = instruction.operands[0].element_type
    if element_type in SIGN_MAGNITUDE:
        return for_sizes(keyed, instruction)
    return elementwise(instruction, lowering, pred=function, integer=function, floating=keyed)


@lowers("maximum")
def maximum(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The larger; NaN wins; +0 is larger than -0; `or` on pred. XLA: operation_semantics.md#max."""
    return elementwise(instruction, lowering, pred=operator.or_, integer=np.maximum, floating=floats.maximum)


@lowers("minimum")
def minimum(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The smaller; NaN wins; -0 is smaller than +0; `and` on pred. XLA: operation_semantics.md#min."""
    return elementwise(instruction, lowering, pred=operator.and_, integer=np.minimum, floating=floats.minimum)


@lowers("clamp")
def clamp(instruction: Instruction, lowering: Lowering) -> Kernel:
    """min(max(low, x), high): NaN anywhere is NaN, and `high` wins over a larger `low`.

    The limits may be scalars where x is not. XLA: operation_semantics.md#clamp.
    """
    return elementwise(
        instruction,
        lowering,
        pred=_clamped(operator.or_, operator.and_),
        integer=_clamped(np.maximum, np.minimum),
        floating=_clamped(floats.maximum, floats.minimum),
    )


def _clamped(larger: Function, smaller: Function) -> Function:
    return lambda low, x, high: smaller(larger(low, x), high)


@lowers("select")
def select(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a where the predicate holds, b elsewhere; a scalar predicate chooses one array whole.

    XLA: operation_semantics.md#select.
    """
    if instruction.operands[0].array_shape.rank == 0 and instruction.array_shape.rank > 0:
        return lambda p, a, b: a if p else b
    return for_sizes(choose, instruction)


@lowers("is-finite")
def is_finite(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Neither NaN nor infinite. XLA: operation_semantics.md#isfinite."""
    return elementwise(instruction, lowering, floating=np.isfinite)
