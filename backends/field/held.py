"""How arrays hold values of the field: a float as one word, a complex number as two, anything else as itself.

A word is a u64 (see `words`). A complex number is a c128 whose real and imaginary parts are the bits of two
words, so that kernels that move data need not know of it; no arithmetic is ever done on such arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.words import join, split
from hlotool.ir.attributes import AttributeValue
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, leaves
from hlotool.numerics.retyping import retyped_shape

Words: TypeAlias = npt.NDArray[np.uint64]


def held_in(element_type: ElementType) -> ElementType:
    """The type whose arrays hold the field's values of `element_type`."""
    if element_type.is_complex:
        return ElementType.C128
    return ElementType.U64 if element_type.is_floating else element_type


def held_instruction(
    instruction: Instruction, attributes: Mapping[str, AttributeValue] | None = None
) -> Instruction:
    """The same instruction on arrays of what holds its values, with some attributes replaced.

    Its operands are parameters: only their shapes count.
    """
    operands = tuple(
        Instruction(o.name, "parameter", retyped_shape(o.shape, held_in), parameter_number=n, line=o.line)
        for n, o in enumerate(instruction.operands)
    )
    return replace(
        instruction,
        shape=retyped_shape(instruction.shape, held_in),
        operands=operands,
        attributes={**instruction.attributes, **(attributes or {})},
    )


def is_inexact(shape: Shape) -> bool:
    """Whether a value of `shape` has floats or complex numbers in it."""
    return any(isinstance(s, ArrayShape) and s.element_type.is_inexact for _, s in leaves(shape))


def is_float(shape: Shape) -> bool:
    """Whether `shape` is that of an array of real floats."""
    return isinstance(shape, ArrayShape) and shape.element_type.is_floating


def is_complex(shape: Shape) -> bool:
    """Whether `shape` is that of an array of complex numbers."""
    return isinstance(shape, ArrayShape) and shape.element_type.is_complex


def parts(z: Any) -> tuple[Words, Words]:
    """The words of the real and of the imaginary parts of complex numbers."""
    array = np.asarray(z, np.complex128)
    pairs = np.ascontiguousarray(array).reshape(-1).view(np.uint64).reshape((*array.shape, 2))
    return pairs[..., 0].copy(), pairs[..., 1].copy()


def pair(real: Any, imaginary: Any) -> Array:
    """Complex numbers of the words of their parts, which broadcast."""
    real, imaginary = np.broadcast_arrays(np.asarray(real, np.uint64), np.asarray(imaginary, np.uint64))
    pairs = np.empty((*real.shape, 2), np.uint64)
    pairs[..., 0], pairs[..., 1] = real, imaginary
    return pairs.view(np.complex128).reshape(real.shape)


def residues(shape: Shape, value: Any, half: int = 0) -> Any:
    """A result as it is compared: one residue of every word, of complex numbers both parts' in one u64.

    Args:
        shape: of the result.
        value: as it is held.
        half: 0 for the residues modulo P, 1 for those modulo Q.
    """
    if isinstance(shape, TupleShape):
        return tuple(residues(part, element, half) for part, element in zip(shape.elements, value))
    if is_float(shape):
        return split(np.asarray(value, np.uint64))[half]
    if is_complex(shape):
        real, imaginary = parts(value)
        return join(split(real)[half], split(imaginary)[half])
    return value
