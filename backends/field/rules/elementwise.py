"""Arithmetic and functions, element by element; reductions, windows and scatters.

Sums and products are exact, extrema go by rank; each is recognised as the numpy backend recognises it. Any
other computation is applied to whole arrays of words at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.field import complexes as c
from hlotool.backends.field import words as w
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.products import product_of, sum_of
from hlotool.backends.field.registry import means, plain
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.values import held_instruction, is_complex, is_float, pair, parts
from hlotool.backends.field.words import P, Q, Words
from hlotool.backends.numpy.elementwise import for_sizes
from hlotool.backends.numpy.kernels.reduce import fold_pairs, rows_of
from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.ordering import Monoid, find_monoids
from hlotool.backends.numpy.reductions import reduce_monoid
from hlotool.backends.numpy.registry import RULES, Kernel
from hlotool.facts.scalar_form import scalar_form
from hlotool.facts.signs import Order
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

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


#: From one input and its initial value to the result.
_Reduce: TypeAlias = Callable[[Any, Any], Any]

_EXTREMA = ("maximum", "minimum")


@means("reduce")
def reduce(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Over whole dimensions; a computation that is no monoid is taken for associative."""
    axes = tuple(sorted(instruction.integers("dimensions")))
    computation = instruction.computation("to_apply")
    monoids = _monoids(computation)
    count = len(instruction.operands) // 2
    if monoids is None:
        combine = lanes(computation, lowering)

        def fold(*values: Any) -> tuple[Any, ...]:
            return tuple(fold_pairs(combine, [rows_of(v, axes) for v in values[:count]], values[count:]))

        return _as_result(instruction, fold)
    reduces = [_reduction(monoid, lowering.trial, axes) for monoid in monoids]

    def kernel(*values: Any) -> tuple[Any, ...]:
        return tuple(one(x, init) for one, x, init in zip(reduces, values[:count], values[count:]))

    return _as_result(instruction, kernel)


def _as_result(instruction: Instruction, kernel: Callable[..., tuple[Any, ...]]) -> Kernel:
    if isinstance(instruction.shape, TupleShape):
        return kernel
    return lambda *values: kernel(*values)[0]


def _monoids(computation: Computation) -> tuple[Monoid, ...] | None:
    """The monoids that the field can reduce by; None where one of them is another one."""
    form = scalar_form(computation)
    monoids = find_monoids(form) if form is not None else None
    return monoids if monoids is not None and all(map(_is_known, monoids)) else None


def _is_known(monoid: Monoid) -> bool:
    return not monoid.element_type.is_complex or monoid.opcode == "add"


def _reduction(monoid: Monoid, trial: Trial, axes: tuple[int, ...]) -> _Reduce:
    if monoid.element_type.is_complex:
        return lambda z, init: pair(
            *(w.add(sum_of(x, axes), start) for x, start in zip(parts(z), parts(init)))
        )
    if not monoid.element_type.is_floating:
        return lambda x, init: reduce_monoid(monoid, x, init, axes)
    if monoid.opcode == "add":
        return lambda x, init: w.add(sum_of(x, axes), init)
    if monoid.opcode == "multiply":
        return lambda x, init: w.multiply(product_of(x, axes), init)
    return lambda x, init: _extremum(trial, monoid.ufunc, x, init, axes)


def _extremum(trial: Trial, ufunc: np.ufunc, x: Words, init: Words, axes: tuple[int, ...]) -> Words:
    numbers, start, words = _ranked(trial, x, init)
    return words[ufunc.reduce(numbers, axis=axes, initial=start)]


def _ranked(trial: Trial, x: Words, init: Words) -> tuple[Array, Any, Words]:
    """The ranks of an array and of an initial value among each other, and the words by rank."""
    numbers, words = trial.kappa.ranks(np.append(np.ravel(x), init))
    return numbers[:-1].reshape(np.shape(x)), numbers[-1], words


@means("reduce-window")
def reduce_window(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Over sliding windows; sums and extrema of floats by the numpy backend's own kernel on u64."""
    monoid = _single_float_monoid(instruction, "to_apply")
    if monoid is None or monoid.opcode not in ("add", *_EXTREMA):
        return RULES["reduce-window"](held_instruction(instruction), lowering)
    kernel = _on_u64(instruction, lowering, to_apply=_scalar(monoid.opcode))
    if monoid.opcode == "add":
        return lambda x, init: _by_residue(lambda a, b: kernel(a, b), x, init)
    trial = lowering.trial

    def extremum(x: Words, init: Words) -> Words:
        numbers, start, words = _ranked(trial, x, init)
        found: Words = words[kernel(numbers.astype(np.uint64), np.uint64(start)).astype(np.int64)]
        return found

    return extremum


@means("scatter")
def scatter(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Sums of floats by the numpy backend's own kernel on u64; others update by update."""
    monoid = _single_float_monoid(instruction, "to_apply")
    if monoid is None or monoid.opcode != "add":
        return RULES["scatter"](held_instruction(instruction), lowering)
    kernel = _on_u64(instruction, lowering, to_apply=_scalar("add"))
    return lambda x, indices, updates: _by_residue(lambda a, b: kernel(a, indices, b), x, updates)


@means("select-and-scatter")
def select_and_scatter(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel, which calls both computations on whole arrays."""
    return RULES["select-and-scatter"](held_instruction(instruction), lowering)


def _single_float_monoid(instruction: Instruction, name: str) -> Monoid | None:
    """The monoid of an instruction on one array of floats."""
    if not is_float(instruction.shape) or is_complex(instruction.shape):
        return None
    monoids = _monoids(instruction.computation(name))
    return monoids[0] if monoids is not None else None


def _on_u64(
    instruction: Instruction, lowering: FieldLowering, **computations: Computation
) -> Callable[..., Array]:
    """The numpy backend's kernel on unsigned integers, with other computations."""
    return plain(RULES[instruction.opcode](held_instruction(instruction, computations), lowering.numbers))


def _scalar(opcode: str) -> Computation:
    """`opcode` of two u64."""
    shape = ArrayShape(ElementType.U64, ())
    operands = tuple(Instruction(name, "parameter", shape, parameter_number=n) for n, name in enumerate("ab"))
    root = Instruction(opcode, opcode, shape, operands)
    return Computation(f"u64.{opcode}", [*operands, root], root)


def _by_residue(function: Callable[[Words, Words], Array], a: Words, b: Words) -> Words:
    """What `function`, which adds up to 2^32 elements of either array, gives for both residues."""
    halves = zip(w.split(a), w.split(b), (P, Q))
    sums = [np.asarray(function(x.copy(), y)).astype(np.uint64) % np.uint64(m) for x, y, m in halves]
    return w.join(*sums)
