"""Functions of CHLO that HLO does not have, written in HLO as XLA writes them.

XLA: ChloLegalizeToStablehlo, materializeErfInv32, materializeErfc.
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

#: Of erfc(x) = 1 - x P(x²) below 1; of exp(-x²)/|x| P(1/x²) below 2, and from there on.
_ERFC = (
    (7.85386146e-05, -0.000801019371, 0.00518832775, -0.0268538129, 0.112835854, -0.37612626, 1.12837911),
    (
        0.0232682, -0.138703942, 0.368742466, -0.582473278, 0.621000469, -0.494451523, 0.340488,
        -0.274112701, 0.563825965,
    ),
    (-10.477664, 12.9772, -7.49551868, 2.92101908, -1.01526523, 0.42184633, -0.282076746, 0.564189494),
)  # fmt: skip
#: Below its negative, exp is 0 in f32.
_LARGEST_EXPONENT = 88.7228394


@operation("erfc")
def _erfc(context: Context) -> Results:
    given = context.operand(0)
    if given.element_type is ElementType.F64 or not given.element_type.is_floating:
        raise context.unsupported(f"has no HLO for {given.element_type}")
    shape = ArrayShape(ElementType.F32, given.dims)
    truth = ArrayShape(ElementType.PRED, given.dims)

    def emit(opcode: str, *operands: Instruction) -> Instruction:
        return context.emit(opcode, *operands, shape=shape)

    def number(value: float) -> Instruction:
        return filled(context, value, shape)

    def below(one: Instruction, other: float) -> Instruction:
        return context.emit("compare", one, number(other), shape=truth, direction="LT")

    def polynomial(at: Instruction, coefficients: tuple[float, ...]) -> Instruction:
        first, *others = coefficients
        made = emit("multiply", at, number(first))
        for coefficient in others[:-1]:
            made = emit("multiply", emit("add", made, number(coefficient)), at)
        return emit("add", made, number(others[-1]))

    x = given if given.element_type is ElementType.F32 else emit("convert", given)
    square, size = emit("multiply", x, x), emit("abs", x)
    near = emit("subtract", number(1), emit("multiply", x, polynomial(square, _ERFC[0])))
    exponent = emit("negate", square)
    scale = emit("multiply", emit("exponential", exponent), emit("divide", number(1), size))
    inverse = emit("divide", number(1), square)
    middle, tail = (polynomial(inverse, coefficients) for coefficients in _ERFC[1:])
    far = emit("multiply", scale, emit("select", below(size, 2), middle, tail))
    far = emit("select", below(exponent, -_LARGEST_EXPONENT), number(0), far)
    far = emit("select", below(x, 0), emit("subtract", number(2), far), far)
    result = emit("select", below(size, 1), near, far)
    return result if given.element_type is ElementType.F32 else context.emit("convert", result)


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
