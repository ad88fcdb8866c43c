"""Floats in the order of their bits: distances in units in the last place, comparators of total order.

Every float type of XLA but f8e8m0fnu is sign and magnitude: its bits, sign cleared, order the non-negative
values. So the distance, counted in representable values, is a difference of integers: exact, monotone, and
0 between -0 and +0. f8e8m0fnu has no sign, all its bits are magnitude.

Where a program sorts floats in their total order, `top_k` among others, its compiler compares the bits as
signed integers: those of negative numbers with all but the sign inverted. Kept in the declared types such a
comparator would round what a wider copy of the program sorts, and make ties where there are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.facts.recognition import integer_constant
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType


def ulp_distance(a: Array, b: Array, element_type: ElementType) -> npt.NDArray[np.uint64]:
    """Representable values between `a` and `b`, elementwise.

    Infinity counts as the value after the largest finite one. The distance to a NaN means nothing: mask those
    elements. Complex numbers take the larger distance of their two parts.

    Args:
        a: values of dtype `dtype_of(element_type)`.
        b: as `a`, of the same dimensions.
        element_type: a float or complex type.
    """
    if element_type.is_complex:
        part = element_type.real_part
        return np.maximum(ulp_distance(a.real, b.real, part), ulp_distance(a.imag, b.imag, part))
    magnitude_a, negative_a = _ordered(a, element_type)
    magnitude_b, negative_b = _ordered(b, element_type)
    same_side = np.maximum(magnitude_a, magnitude_b) - np.minimum(magnitude_a, magnitude_b)
    return np.where(negative_a == negative_b, same_side, magnitude_a + magnitude_b)


def _ordered(
    values: Array, element_type: ElementType
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Magnitude bits and signs."""
    unsigned = np.dtype(f"u{dtype_of(element_type).itemsize}")
    bits = values.view(unsigned).astype(np.uint64)
    if element_type is ElementType.F8E8M0FNU:
        return bits, np.zeros(bits.shape, np.bool_)
    sign = np.uint64(1 << (element_type.value_bits - 1))
    return bits & (sign - np.uint64(1)), (bits & sign) != 0


@cache
def epsilon(element_type: ElementType) -> float:
    """Distance from 1 to the next larger value: one ulp at 1; of a complex type that of its parts."""
    dtype = dtype_of(element_type.real_part)
    bits = np.ones(1, dtype).view(np.dtype(f"u{dtype.itemsize}"))
    return float((bits + bits.dtype.type(1)).view(dtype)[0]) - 1.0


def digits_of(element_type: ElementType) -> int:
    """Binary digits of its numbers: 24 of f32; of a complex type those of its parts."""
    return 1 - round(math.log2(epsilon(element_type)))


@cache
def flush_threshold(element_type: ElementType) -> float:
    """Magnitude below which XLA's CPU and GPU code may flush values to zero; 0 when it never does.

    f32 and f64 code runs with denormals disabled. bf16 computes in f32 and shares its exponent range. The
    denormals of the other narrow types are normal numbers in f32.
    """
    part = element_type.real_part
    if part in (ElementType.F32, ElementType.BF16):
        return 2.0**-126
    return 2.0**-1022 if part is ElementType.F64 else 0.0


#: Signed integers by their width.
_SIGNED: Final = {
    16: ElementType.S16,
    32: ElementType.S32,
    64: ElementType.S64,
}
#: What else stands in such a comparator.
_PLAIN: Final = frozenset({"compare", "constant", "convert", "parameter", "select", "xor"})


def order_types(
    computation: Computation, types: Callable[[ElementType], ElementType]
) -> Mapping[ElementType, ElementType]:
    """The integers that hold bits of floats in a comparator of scalars, and what they are in other types.

    Args:
        computation: that may be such a comparator.
        types: the float that takes the place of each.

    Returns:
        Empty where the computation is none, or does anything else with such integers.
    """
    found: dict[ElementType, ElementType] = {}
    for instruction in computation.instructions:
        if not isinstance(instruction.shape, ArrayShape) or instruction.dims:
            return {}
        if instruction.opcode in ("bitcast", "bitcast-convert"):
            given, made = instruction.operands[0].element_type, instruction.element_type
            wider = _SIGNED.get(types(given).bits)
            if not given.is_floating or _SIGNED.get(given.bits) is not made or wider is None:
                return {}
            if found.setdefault(made, wider) is not wider:
                return {}
        elif instruction.opcode not in _PLAIN:
            return {}
    if not all(_is_bits_or_limit(i) for i in computation.instructions if i.element_type in found):
        return {}
    return found


def _is_bits_or_limit(instruction: Instruction) -> bool:
    """Whether it is made of bits of floats, zero and the largest integer, and of nothing else."""
    if instruction.opcode == "constant":
        return integer_constant(instruction) in (0, _largest(instruction.element_type))
    return instruction.opcode in ("bitcast", "bitcast-convert", "select", "xor")


def limit_in(value: int, into: ElementType) -> int:
    """The constant of a comparator in other integers: zero, or the largest."""
    return _largest(into) if value else 0


def _largest(kind: ElementType) -> int:
    return (1 << (kind.bits - 1)) - 1
