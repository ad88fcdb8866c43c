"""Comparators that order floats by their bits, as signed integers: what they are in other float types.

Where a program sorts floats in their total order, `top_k` among others, its compiler compares the bits: those
of negative numbers with all but the sign inverted. Kept in the declared types such a comparator would round
what a wider copy of the program sorts, and make ties where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hlotool.analysis.constants import integer_constant
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType

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
