"""What programs make of odd numbers is not always said by anybody: such sets are left out."""

from __future__ import annotations

from hlotool.analysis.custom_calls import TRANSPARENT
from hlotool.ir.module import Module
from hlotool.ir.opcodes import Class

#: Odd values that operations may spread.
_NO_NUMBERS = frozenset({"NaN", "infinity", "extreme numbers"})


def left_open(module: Module, is_bounded: bool = False) -> frozenset[str]:
    """What is odd about sets, and nobody says what becomes of it.

    Bounds of the user (`is_bounded`) leave none of it. Linear algebra is a library's affair; and whether a
    convolution multiplies by the zeros of its padding, which makes NaN of infinity, is up to the compiler.
    """
    if is_bounded:
        return _NO_NUMBERS | {"negative zeros"}
    for instruction in module.instructions():
        is_call = instruction.opcode == "custom-call"
        if is_call and instruction.custom_call_target in TRANSPARENT:
            continue
        if is_call or instruction.row.opcode_class is Class.LIBRARY:
            return _NO_NUMBERS
    has_convolution = any(i.opcode == "convolution" for i in module.instructions())
    return _NO_NUMBERS - {"NaN"} if has_convolution else frozenset()
