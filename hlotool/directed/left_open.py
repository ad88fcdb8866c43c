"""What programs make of odd numbers is not always said by anybody: such sets are left out."""

from __future__ import annotations

from typing import Final

from hlotool.analysis.custom_calls import TRANSPARENT
from hlotool.directed.sets import OUT_OF_DOMAIN
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class

#: Odd values that operations may spread.
_NO_NUMBERS = frozenset({"NaN", "infinity", "extreme numbers", OUT_OF_DOMAIN})
#: Libraries that compilers call, and never rewrite: both sides make the same call.
_LAPACK: Final = ("lapack_", "blas_")
#: LAPACK's balancing before eigenvalues refuses a NaN with a message, and returns what was in memory.
_BALANCED: Final = ("geev",)


def left_open(module: Module, is_bounded: bool = False) -> frozenset[str]:
    """What is odd about sets, and nobody says what becomes of it.

    Bounds of the user (`is_bounded`) leave none of it. Linear algebra is a library's affair: of NaN LAPACK
    makes NaN, or says in its `info` that it failed, and XLA's CPU client and the reference call the same
    routines; infinities and the ends of the range depend on how a routine scales. Batch normalization is
    arithmetic (XLA: operation_semantics.md), in an order that is open where a number is infinite. And whether
    a convolution multiplies by the zeros of its padding, which makes NaN of infinity, is up to the compiler.
    """
    if is_bounded:
        return _NO_NUMBERS | {"negative zeros"}
    found: frozenset[str] = frozenset()
    for instruction in module.instructions():
        found |= _open_in(instruction)
    return found


def _open_in(instruction: Instruction) -> frozenset[str]:
    if instruction.opcode == "custom-call":
        target = instruction.custom_call_target
        if target in TRANSPARENT:
            return frozenset()
        is_known = target.startswith(_LAPACK) and not any(name in target for name in _BALANCED)
        return _NO_NUMBERS - {"NaN"} if is_known else _NO_NUMBERS
    if instruction.opcode == "convolution" or instruction.opcode.startswith("batch-norm-"):
        return _NO_NUMBERS - {"NaN"}
    return _NO_NUMBERS if instruction.row.opcode_class is Class.LIBRARY else frozenset()
