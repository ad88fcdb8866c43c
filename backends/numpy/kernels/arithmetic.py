"""Sums, products, quotients, powers and signs.

pred adds as `or` and multiplies as `and`; integers wrap; narrow floats are computed in f32 and rounded once.
"""

from __future__ import annotations

import operator
from functools import partial

import numpy as np

from hlotool.backends.numpy import complexes, floats, integers
from hlotool.backends.numpy.elementwise import elementwise
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.module import Instruction


@lowers("add")
def add(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a + b. XLA: operation_semantics.md#add."""
    f = operator.add
    return elementwise(instruction, lowering, pred=f, integer=f, floating=f, complexes=f)


@lowers("subtract")
def subtract(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a - b. XLA: operation_semantics.md#sub."""
    f = operator.sub
    return elementwise(instruction, lowering, integer=f, floating=f, complexes=f)


@lowers("multiply")
def multiply(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a · b. XLA: operation_semantics.md#mul."""
    f = operator.mul
    return elementwise(instruction, lowering, pred=f, integer=f, floating=f, complexes=f)


@lowers("divide")
def divide(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a / b; integers divide towards zero, by zero to -1 (unsigned: all ones).

    XLA: operation_semantics.md#div. A constant integer division by zero kills XLA's compiler (SIGFPE).
    """
    return elementwise(
        instruction,
        lowering,
        integer=integers.divide,
        floating=operator.truediv,
        complexes=complexes.divide,
    )


@lowers("remainder")
def remainder(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a - b · trunc(a / b), with the sign of a; an integer modulo 0 is itself. XLA: #rem."""
    return elementwise(instruction, lowering, integer=integers.remainder, floating=np.fmod)


@lowers("power")
def power(instruction: Instruction, lowering: Lowering) -> Kernel:
    """a to the b; floats as C's pow (x^0 = 1^x = 1 even for NaN), integers wrapped.

    XLA: operation_semantics.md#pow. Where XLA's evaluator and its CPU code generator disagree on integers,
    this is the mathematical value: the generator reads only the low 6 bits of the exponent (3^64 is 1 there,
    0^64 too) and takes unsigned exponents from 2^31 on for negative; the evaluator makes (-1)^-1 zero.
    """
    return elementwise(
        instruction, lowering, integer=integers.power, floating=np.power, complexes=complexes.power
    )


@lowers("mulhi")
def mulhi(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The high half of the double-width integer product. XLA: hlo_opcode.h."""
    bits = instruction.element_type.bits
    return elementwise(instruction, lowering, integer=partial(integers.multiply_high, bits=bits))


@lowers("negate")
def negate(instruction: Instruction, lowering: Lowering) -> Kernel:
    """-a; the most negative integer stays. XLA: operation_semantics.md#neg."""
    f = operator.neg
    return elementwise(instruction, lowering, integer=f, floating=f, complexes=f)


@lowers("abs")
def absolute(instruction: Instruction, lowering: Lowering) -> Kernel:
    """|a|; the most negative integer stays; of a complex number its length, safe from overflow. XLA: #abs."""
    return elementwise(instruction, lowering, integer=np.abs, floating=np.abs, complexes=np.abs)


@lowers("sign")
def sign(instruction: Instruction, lowering: Lowering) -> Kernel:
    """-1, 0 or 1; float zeros keep their sign, NaN stays; a complex number over its length. XLA: #sign."""
    return elementwise(instruction, lowering, integer=np.sign, floating=floats.sign, complexes=complexes.sign)


@lowers("complex")
def make_complex(instruction: Instruction, lowering: Lowering) -> Kernel:
    """From real and imaginary part. XLA: operation_semantics.md#complex."""
    return elementwise(instruction, lowering, floating=complexes.compose)


@lowers("real")
def real(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The real part; a real number is its own. XLA: operation_semantics.md#real."""
    return elementwise(instruction, lowering, floating=operator.pos, complexes=operator.attrgetter("real"))


@lowers("imag")
def imag(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The imaginary part; zero for a real number. XLA: operation_semantics.md#imag."""
    return elementwise(instruction, lowering, floating=np.zeros_like, complexes=operator.attrgetter("imag"))
