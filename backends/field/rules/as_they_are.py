"""Opcodes that never look at a float: the numpy backend's kernels do, on words."""

from __future__ import annotations

from typing import Any

from hlotool.backends.field.held import held_instruction
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import means
from hlotool.backends.numpy.registry import RULES, Calling, Kernel
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with


@means(
    *opcodes_with(Trait.FORWARDS, Trait.ORDERS, Trait.FINISHES, Class.TUPLE),
    *("conditional", "copy", "get-dimension-size", "infeed", "map", "outfeed", "send", "send-done"),
    *("set-dimension-size", "while"),
)
def untyped(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel, which does not depend on types; what it calls is lowered to the field."""
    return RULES[instruction.opcode](instruction, lowering)


@means(
    *opcodes_with(Trait.MOVES, Class.INDEXING, Class.COLLECTIVE)
    - opcodes_with(Trait.APPLIES, Trait.FINISHES)
    - {"bitcast", "copy"},
    *("async-start", "copy-start", "dynamic-reshape", "recv", "recv-done", "scan", "select"),
)
def held(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel for arrays of what holds the values: it allocates, or counts bytes."""
    return RULES[instruction.opcode](held_instruction(instruction), lowering)


@means("all-reduce", "all-reduce-start", "reduce-scatter")
def reductions_over_devices(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel, which applies `to_apply` to one copy after the other."""
    return RULES[instruction.opcode](instruction, lowering)


@means("call", "fusion")
def called(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The called computation's result; constants that are passed to it are folded inside."""
    (computation,) = instruction.called
    plan = lowering.called_plan(computation, instruction.operands)
    return Calling(plan)


@means("reduce-precision")
def unrounded(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The same number: nothing is rounded."""
    return _same


def _same(value: Any) -> Any:
    return value
