"""Products over contracted dimensions, exact whatever the types, and Fourier transforms as linear maps
where small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import cos, pi, prod, sin
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.products import MOST_TERMS, bilinear, matmul
from hlotool.backends.field.registry import means, plain
from hlotool.backends.field.trial import embedded
from hlotool.backends.field.unknown import black_box
from hlotool.backends.field.values import is_complex, is_float, pair, parts
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.kernels.dot import dot_dimensions, refuse_structure
from hlotool.backends.numpy.registry import RULES, Kernel
from hlotool.facts.retyping import retyped_shape
from hlotool.ir.attributes import ConvolutionDimensions
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: From the words of both operands to those of the product.
_Product: TypeAlias = Callable[[Words, Words], Words]


@means("dot")
def dot(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The sum of products."""
    refuse_structure(instruction, lowering)
    dimensions = dot_dimensions(instruction)
    return _of_types(instruction, lowering, lambda a, b: dimensions.contract_by(matmul, a, b))


@means("convolution")
def convolution(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's convolution of 16-bit limbs in f64, in which all sums are exact."""
    terms = _terms(instruction)
    if terms > MOST_TERMS:
        raise lowering.unsupported(instruction, f"sums of {terms} products; {MOST_TERMS} are exact in f64")
    operands = tuple(
        Instruction(o.name, "parameter", retyped_shape(o.shape, _to_f64), parameter_number=n)
        for n, o in enumerate(instruction.operands)
    )
    shape = retyped_shape(instruction.shape, _to_f64)
    in_f64 = replace(instruction, operands=operands, shape=shape)
    convolve = plain(RULES["convolution"](in_f64, lowering.numbers))
    return _of_types(instruction, lowering, lambda a, b: bilinear(convolve, a, b, terms))


def _terms(convolution: Instruction) -> int:
    """How many products an element of the result is the sum of."""
    labels = convolution.attribute("dim_labels", ConvolutionDimensions)
    kernel = convolution.operands[1].dims
    return prod(size for dim, size in enumerate(kernel) if dim != labels.kernel_output_feature)


def _to_f64(element_type: ElementType) -> ElementType:
    """The limbs of whatever type are f64."""
    return ElementType.F64


def _of_types(instruction: Instruction, lowering: FieldLowering, product: _Product) -> Kernel:
    """A kernel for the operands' types: complex numbers take four products, integers are embedded."""
    if not instruction.element_type.is_inexact:
        raise lowering.unsupported(instruction, "a product of floats that is an integer")
    to_words = [_same if o.element_type.is_inexact else embedded for o in instruction.operands]
    if not is_complex(instruction.shape):
        left, right = to_words
        return lambda a, b: product(left(a), right(b))
    to_pairs = [
        parts if is_complex(o.shape) else _real_pair if is_float(o.shape) else _integer_pair
        for o in instruction.operands
    ]

    def kernel(x: Any, y: Any) -> Any:
        (a, b), (c, d) = (to_pair(value) for to_pair, value in zip(to_pairs, (x, y)))
        real = w.subtract(product(a, c), product(b, d))
        return pair(real, w.add(product(a, d), product(b, c)))

    return kernel


def _same(value: Any) -> Any:
    return value


def _real_pair(value: Words) -> tuple[Words, Words]:
    return value, np.zeros_like(value)


def _integer_pair(value: Any) -> tuple[Words, Words]:
    return _real_pair(embedded(value))


#: A transform of more points along one dimension is a black box: as a matrix it would take long.
_MOST_POINTS = 256

_Pair: TypeAlias = tuple[Words, Words]


@means("fft")
def fft(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The sum of the elements times roots of unity, whose parts are constants like others."""
    kind, lengths = instruction.text("fft_type"), instruction.integers("fft_length")
    if kind not in ("FFT", "IFFT", "RFFT", "IRFFT"):
        raise lowering.unsupported(instruction, f"fft_type {kind}")
    if max(lengths, default=1) > _MOST_POINTS or not prod(instruction.dims):
        return black_box(instruction, lowering, f"{kind} of length {lengths}")
    constants, rank = lowering.constants, instruction.array_shape.rank
    is_inverse = kind.startswith("I")
    scale = w.rational(1, prod(lengths)) if is_inverse else w.ONE
    maps = [_roots(n, n, is_inverse, constants) for n in lengths]
    last, axes = lengths[-1], range(rank - len(lengths), rank)
    if kind == "RFFT":
        maps[-1] = _roots(last, last // 2 + 1, is_inverse, constants)
    if kind == "IRFFT":
        maps[-1] = _from_half_spectrum(last, constants)

    def kernel(x: Any) -> Any:
        value = parts(x) if is_complex(instruction.operands[0].shape) else (x, np.zeros_like(x))
        for axis, roots in zip(axes, maps):
            value = _along(axis, roots, value)
        real, imaginary = (w.multiply(part, scale) for part in value)
        return pair(real, imaginary) if is_complex(instruction.shape) else real

    return kernel


def _along(axis: int, roots: _Pair, value: _Pair) -> _Pair:
    """The products with a matrix of roots [from, to] along one dimension."""

    def by(part: Words, matrix: Words) -> Words:
        rows = np.moveaxis(part, axis, -1)
        flat = np.ascontiguousarray(rows).reshape(-1, rows.shape[-1])
        found = matmul(flat, matrix).reshape(*rows.shape[:-1], matrix.shape[1])
        return np.moveaxis(found, -1, axis)

    (a, b), (c, d) = value, roots
    return w.subtract(by(a, c), by(b, d)), w.add(by(a, d), by(b, c))


def _roots(points: int, results: int, is_inverse: bool, constants: Constants) -> _Pair:
    """exp(∓2πi k m / points) for k below `points` and m below `results`."""
    cosines, sines = (constants.words(_turns(f, points)) for f in (cos, sin))
    powers = np.outer(np.arange(points), np.arange(results)) % points
    return cosines[powers], sines[powers] if is_inverse else w.negate(sines[powers])


def _from_half_spectrum(points: int, constants: Constants) -> _Pair:
    """The inverse for a spectrum of which the half stands for the whole; only real parts are asked for."""
    cosines, sines = (part[: points // 2 + 1] for part in _roots(points, points, True, constants))
    weights = np.full((points // 2 + 1, 1), 2)
    weights[0] = 1
    if points % 2 == 0:
        weights[-1] = 1
    twice = w.integers(weights)
    return w.multiply(cosines, twice), w.multiply(sines, twice)


def _turns(function: Callable[[float], float], points: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """`function`, cosine or sine, of 2πk / points; what is equal by symmetry is equal to the bit."""
    return np.array([_at_turn(function, Fraction(k, points)) for k in range(points)])


def _at_turn(function: Callable[[float], float], turn: Fraction) -> float:
    if turn > Fraction(1, 2):
        return _at_turn(function, 1 - turn) * (1 if function is cos else -1)
    if turn > Fraction(1, 4):
        return _at_turn(function, Fraction(1, 2) - turn) * (-1 if function is cos else 1)
    if turn > Fraction(1, 8):
        other: Callable[[float], float] = sin if function is cos else cos
        return _at_turn(other, Fraction(1, 4) - turn)
    return function(2 * pi * float(turn))
