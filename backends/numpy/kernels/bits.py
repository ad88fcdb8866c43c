"""Logic, shifts and bit counts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial

import numpy as np

from hlotool.backends.numpy import integers
from hlotool.backends.numpy.elementwise import elementwise
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction


@lowers("and")
def bitwise_and(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Logical on pred, bitwise on integers. XLA: operation_semantics.md#and."""
    return elementwise(instruction, lowering, pred=operator.and_, integer=operator.and_)


@lowers("or")
def bitwise_or(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Logical on pred, bitwise on integers. XLA: operation_semantics.md#or."""
    return elementwise(instruction, lowering, pred=operator.or_, integer=operator.or_)


@lowers("xor")
def bitwise_xor(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Logical on pred, bitwise on integers. XLA: operation_semantics.md#xor."""
    return elementwise(instruction, lowering, pred=operator.xor, integer=operator.xor)


@lowers("not")
def invert(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Logical on pred, bitwise on integers. XLA: operation_semantics.md#not."""
    return elementwise(instruction, lowering, pred=np.invert, integer=np.invert)


@lowers("shift-left")
def shift_left(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a · 2^b; 0 for an amount, read as unsigned, of the width or more (so in NumPy). XLA: #shiftleft."""
    return elementwise(instruction, lowering, integer=operator.lshift)


@lowers("shift-right-logical")
def shift_right_logical(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Zeros come in from the left. XLA: operation_semantics.md#shiftrightlogical."""
    return _with_width(instruction, lowering, integers.shift_right_logical)


@lowers("shift-right-arithmetic")
def shift_right_arithmetic(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Copies of the top bit come in, on unsigned types too. XLA: #shiftrightarithmetic."""
    return _with_width(instruction, lowering, integers.shift_right_arithmetic)


@lowers("count-leading-zeros")
def count_leading_zeros(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Zero bits above the highest one bit; the width for 0.

    XLA: operation_semantics.md#clz; its evaluator is wrong for negative numbers narrower than 32 bits.
    """
    return _with_width(instruction, lowering, integers.count_leading_zeros)


@lowers("popcnt")
def popcount(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Number of one bits within the width of the type.

    XLA: operation_semantics.md#populationcount; its CPU code generator counts copies of the sign bit of
    negative s4 numbers too (-8 has 5 one bits there).
    """
    return _with_width(instruction, lowering, integers.popcount)


def _with_width(instruction: Instruction, lowering: Lowering, function: Callable[..., Array]) -> Kernel:
    bits = instruction.element_type.bits
    return elementwise(instruction, lowering, integer=partial(function, bits=bits))
