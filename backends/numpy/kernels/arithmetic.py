"""Arithmetic and functions: sums, products, quotients, powers, signs, roots, exponentials, logic, shifts,
transforms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy import complexes, floats, integers
from hlotool.backends.numpy.elementwise import elementwise
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.arrays import Array, dtype_of
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


#: Functions that NumPy has for real and complex numbers; XLA's documentation has sections of these names.
_NUMPY: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log": np.log,
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


@lowers(*_NUMPY)
def numpy_function(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The function of that name."""
    function = _NUMPY[instruction.opcode]
    return elementwise(instruction, lowering, floating=function, complexes=function)


@lowers("log-plus-one")
def log_plus_one(instruction: Instruction, lowering: Lowering) -> Kernel:
    """log(1 + a), accurate for small a. XLA: operation_semantics.md#log1p."""
    return elementwise(instruction, lowering, floating=np.log1p, complexes=complexes.log1p)


@lowers("rsqrt")
def rsqrt(instruction: Instruction, lowering: Lowering) -> Kernel:
    """1 / sqrt(a); infinite at zero with the zero's sign. XLA: operation_semantics.md#rsqrt."""
    return elementwise(instruction, lowering, floating=floats.rsqrt, complexes=complexes.rsqrt)


@lowers("logistic")
def logistic(instruction: Instruction, lowering: Lowering) -> Kernel:
    """1 / (1 + exp(-a)). XLA: operation_semantics.md#logistic."""
    return elementwise(instruction, lowering, floating=floats.logistic, complexes=complexes.logistic)


@lowers("cbrt")
def cbrt(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The real cube root, negative for negative numbers. XLA: operation_semantics.md#cbrt."""
    return elementwise(instruction, lowering, floating=np.cbrt)


@lowers("erf")
def erf(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The error function. XLA: operation_semantics.md#erf."""
    return elementwise(instruction, lowering, floating=floats.erf)


@lowers("atan2")
def atan2(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The angle of the point (b, a), as C's atan2. XLA: operation_semantics.md#atan2."""
    return elementwise(instruction, lowering, floating=np.arctan2, complexes=complexes.atan2)


#: `fft_type` → transform over some axes; the inverse ones divide by the number of points.
_TRANSFORMS: dict[str, Callable[..., Any]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


@lowers("fft")
def fft(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Transform the last one to three dimensions, as many as `fft_length` has.

    The transform keeps the precision of its operand; XLA's evaluator computes in c128. IRFFT ignores the
    imaginary parts that a real signal cannot have. A length that does not fit the operand is refused: XLA
    does not check it for FFT and IFFT, and its CPU code then leaves part of the result uninitialised; of an
    empty result nothing can be.

    XLA: operation_semantics.md#fft.
    """
    kind = instruction.text("fft_type")
    length = instruction.integers("fft_length")
    if kind not in _TRANSFORMS:
        raise lowering.unsupported(instruction, f"fft_type {kind}")
    result = instruction.array_shape
    dtype = dtype_of(result.element_type)
    if not prod(result.dims):
        return lambda x: np.zeros(result.dims, dtype)
    operand = instruction.operands[0].array_shape
    sizes = operand.dims[operand.rank - len(length) :]
    expected = (*length[:-1], length[-1] // 2 + 1) if kind == "IRFFT" else length
    if sizes != expected:
        raise lowering.unsupported(instruction, f"{kind} of length {length} on dimensions {sizes}")
    transform, axes = _TRANSFORMS[kind], tuple(range(-len(length), 0))
    return lambda x: transform(x, s=length, axes=axes).astype(dtype, copy=False)
