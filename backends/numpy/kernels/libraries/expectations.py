"""What tests of StableHLO expect of their values: `hlotool.runs.expectations` compares it."""

from __future__ import annotations

from hlotool.backends.base import TOKEN, Value
from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.facts.recognition import EXPECTATIONS
from hlotool.ir.module import Instruction
from hlotool.ir.types import TokenShape


@custom_call(*EXPECTATIONS)
def expected(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Compares two values and returns nothing. Source: stablehlo/tests/CheckOps.td."""
    result: Value = TOKEN if isinstance(instruction.shape, TokenShape) else ()
    return lambda *operands: result
