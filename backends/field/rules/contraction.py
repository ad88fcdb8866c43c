"""Products of arrays over contracted dimensions: exact, whatever the types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.held import is_complex, is_float, pair, parts
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.products import MOST_TERMS, bilinear, matmul
from hlotool.backends.field.registry import means, plain
from hlotool.backends.field.trial import embedded
from hlotool.backends.field.words import Words
from hlotool.backends.numpy.kernels.dot import dot_dimensions, refuse_structure
from hlotool.backends.numpy.registry import RULES, Kernel
from hlotool.ir.attributes import ConvolutionDimensions
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType
from hlotool.numerics.retyping import retyped_shape

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
