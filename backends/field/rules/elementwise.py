"""Arithmetic and functions, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from hlotool.backends.field import complexes as c
from hlotool.backends.field import words as w
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import means
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.values import is_complex, pair, parts
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.elementwise import for_sizes
from hlotool.backends.numpy.registry import Kernel
from hlotool.facts.signs import Order
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with

#: From the words of the operands to those of the result.
_Real: TypeAlias = Callable[..., Words]

_ARITHMETIC: dict[str, tuple[_Real, c.Function]] = {
    "add": (w.add, c.add),
    "subtract": (w.subtract, c.subtract),
    "multiply": (w.multiply, c.multiply),
    "negate": (w.negate, c.negate),
    "divide": (w.divide, c.divide),
}

#: Functions of real numbers that the trial knows laws of.
_FUNCTIONS: dict[str, Callable[[Trial], _Real]] = {
    "cbrt": lambda t: w.cbrt,
    "cosh": lambda t: t.cosh,
    "exponential": lambda t: t.exp,
    "exponential-minus-one": lambda t: t.expm1,
    "log": lambda t: t.log,
    "log-plus-one": lambda t: lambda x: t.log(w.add(x, w.ONE)),
    "logistic": lambda t: t.logistic,
    "power": lambda t: t.power,
    "remainder": lambda t: t.remainder,
    "rsqrt": lambda t: t.rsqrt,
    "sinh": lambda t: t.sinh,
    "sqrt": lambda t: t.sqrt,
    "tan": lambda t: t.tan,
    "tanh": lambda t: t.tanh,
}

#: Functions without laws; the odd ones know the sign.
_WITHOUT_LAWS = opcodes_with(Trait.TRANSCENDENTAL) - _FUNCTIONS.keys()
_ODD = _WITHOUT_LAWS & opcodes_with(Trait.ODD)
_OPAQUE = _WITHOUT_LAWS - _ODD


@means(*_ARITHMETIC)
def arithmetic(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Exact, of real and complex numbers."""
    real, complexes = _ARITHMETIC[instruction.opcode]
    return for_sizes(c.lifted(complexes) if is_complex(instruction.shape) else real, instruction)


@means(*_FUNCTIONS)
def function(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """By the laws of the function; of complex numbers some have."""
    if is_complex(instruction.shape):
        return _complex_function(instruction, lowering)
    trial = lowering.trial
    of_trial = _FUNCTIONS[instruction.opcode]
    for made_of in ("sine", "cosine") if instruction.opcode == "tan" else ():
        lowering.use_box(instruction, made_of, is_function=True)
    return for_sizes(lambda *operands: of_trial(trial)(*operands), instruction)


@means(*_ODD)
def odd_function(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Without laws but f(-x) = -f(x)."""
    if is_complex(instruction.shape):
        return _complex_function(instruction, lowering)
    trial, name = lowering.trial, instruction.opcode
    lowering.use_box(instruction, name, is_function=True)
    return for_sizes(lambda x: trial.odd(name, x), instruction)


@means(*_OPAQUE)
def opaque_function(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Without laws."""
    if is_complex(instruction.shape):
        return _complex_function(instruction, lowering)
    trial, name = lowering.trial, instruction.opcode
    lowering.use_box(instruction, name, is_function=True)
    if name == "cosine":
        return for_sizes(lambda x: trial.cosine(x), instruction)
    return for_sizes(lambda *operands: trial.opaque(name, *operands), instruction)


def _complex_function(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    trial, name = lowering.trial, instruction.opcode
    if name in _COMPLEX:
        for made_of in () if _is_product(instruction) else _COMPLEX_BOXES[name]:
            lowering.use_box(instruction, made_of, is_function=True)
        function = _COMPLEX[name]
        return for_sizes(c.lifted(lambda *operands: function(trial, *operands)), instruction)
    lowering.use_box(instruction, f"complex {name}")
    return for_sizes(c.lifted(lambda *operands: c.opaque(trial, name, *operands)), instruction)


#: Functions of complex numbers that have laws, and unknown functions that they are made of: themselves, too,
#: for XLA writes them in ways that need more laws.
_COMPLEX: dict[str, Callable[..., c.Pair]] = {
    "exponential": c.exp,
    "log": c.log,
    "power": c.power,
    "sqrt": c.sqrt,
}
_COMPLEX_BOXES: dict[str, tuple[str, ...]] = {
    "exponential": ("cosine", "sine"),
    "log": ("atan2", "complex log"),
    "power": ("atan2", "complex power", "cosine", "sine"),
    "sqrt": ("complex sqrt",),
}


def _is_product(instruction: Instruction) -> bool:
    """Whether this is a power whose exponent is a constant that only takes products and roots."""
    if instruction.opcode != "power":
        return False
    exponent = instruction.operands[1]
    exponent = exponent.operands[0] if exponent.opcode == "broadcast" else exponent
    if exponent.literal is None or exponent.literal.has_elided:
        return False
    return c.is_product(np.unique(exponent.literal.array))


@means("abs")
def absolute(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """|x|; of a complex number the root of the sum of both squares."""
    trial = lowering.trial
    if is_complex(instruction.operands[0].shape):
        return for_sizes(lambda z: c.length(parts(z)), instruction)
    match lowering.sign(instruction.operands[0]):
        case Order.AT_LEAST:
            return lambda x: x
        case Order.AT_MOST:
            return for_sizes(w.negate, instruction)
    return for_sizes(lambda x: trial.kappa.absolute(x), instruction)


@means("sign")
def sign(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """-1, 0 or 1; a complex number over its length."""
    trial = lowering.trial
    if is_complex(instruction.shape):
        return for_sizes(c.lifted(c.direction), instruction)
    known = lowering.sign(instruction.operands[0])
    if known is not None:
        one = w.ONE if known is Order.AT_LEAST else w.negate(w.ONE)
        return for_sizes(lambda x: np.where(w.equal(x, w.ZERO), w.ZERO, one), instruction)
    return for_sizes(lambda x: trial.sign(x), instruction)


#: What makes numbers whole.
_ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round-nearest-afz": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "round-nearest-even": np.rint,
}


@means(*_ROUNDINGS)
def rounding(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Of the pseudo-real value."""
    trial, function = lowering.trial, _ROUNDINGS[instruction.opcode]
    return for_sizes(lambda x: trial.rounded(x, function), instruction)


@means("complex")
def make_complex(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """From real and imaginary part."""
    return for_sizes(pair, instruction)


@means("real")
def real(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The real part; a real number is its own."""
    if not is_complex(instruction.operands[0].shape):
        return lambda x: x
    return lambda z: parts(z)[0]


@means("imag")
def imaginary(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The imaginary part; zero for a real number."""
    if not is_complex(instruction.operands[0].shape):
        return np.zeros_like
    return lambda z: parts(z)[1]
