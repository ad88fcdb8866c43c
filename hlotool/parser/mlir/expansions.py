"""Functions of CHLO that HLO does not have, written in HLO as XLA writes them.

XLA: ChloLegalizeToStablehlo, materializeErfInv32.
"""

from __future__ import annotations

import numpy as np

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.parser.mlir.elementwise import filled
from hlotool.parser.mlir.frames import Context, Results, operation

#: Giles, Approximating the erfinv function: coefficients near 0 and in the tails.
_CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


@operation("erf_inv")
def _erf_inv(context: Context) -> Results:
    given = context.operand(0)
    if given.element_type is ElementType.F64 or not given.element_type.is_floating:
        raise context.unsupported(f"has no HLO for {given.element_type}")
    shape = ArrayShape(ElementType.F32, given.dims)

    def emit(opcode: str, *operands: Instruction) -> Instruction:
        return context.emit(opcode, *operands, shape=shape)

    def number(value: float) -> Instruction:
        return filled(context, value, shape)

    def select(which: Instruction, one: Instruction, other: Instruction) -> Instruction:
        return context.emit("select", which, one, other, shape=shape)

    truth = ArrayShape(ElementType.PRED, given.dims)
    x = given if given.element_type is ElementType.F32 else emit("convert", given)
    w = emit("negate", emit("log-plus-one", emit("multiply", x, emit("negate", x))))
    is_central = context.emit("compare", w, number(5), shape=truth, direction="LT")
    w = select(is_central, emit("subtract", w, number(2.5)), emit("subtract", emit("sqrt", w), number(3)))
    p = select(is_central, number(_CENTRAL[0]), number(_TAIL[0]))
    for central, tail in zip(_CENTRAL[1:], _TAIL[1:]):
        coefficient = select(is_central, number(central), number(tail))
        p = emit("add", coefficient, emit("multiply", p, w))
    is_end = context.emit("compare", emit("abs", x), number(1), shape=truth, direction="EQ")
    result = select(is_end, emit("multiply", x, number(np.inf)), emit("multiply", p, x))
    return result if given.element_type is ElementType.F32 else context.emit("convert", result)
