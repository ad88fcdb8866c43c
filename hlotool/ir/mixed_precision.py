"""Floats of unequal width around one instruction that is no conversion, as the TPU's compiler writes them.

An instruction that only moves elements then converts them on the way, one that computes does so in the widest
of its operands' types and rounds the result. XLA: hlo_verifier.h (allow_mixed_precision); measured on texts
that libtpu 0.0.42 ends with: `f32 broadcast(bf16)`, `bf16 reshape(f32)`.
"""

from __future__ import annotations

from functools import reduce

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.shapes.compatibility import higher_precision
from hlotool.ir.types import ArrayShape, ElementType

_CLASSES = frozenset((Class.DATA_MOVEMENT, Class.ELEMENTWISE, Class.INDEXING))
#: Their types differ by what they are, or are no numbers to them.
_CONVERSIONS = frozenset(("bitcast", "bitcast-convert", "convert", "stochastic-convert"))


def implied_source(instruction: Instruction) -> ElementType | None:
    """The float type that an instruction converts from without saying so; None where it converts nothing."""
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_floating:
        return None
    if instruction.opcode in _CONVERSIONS or instruction.row.opcode_class not in _CLASSES:
        return None
    own = shape.element_type
    types = [o.shape.element_type for o in instruction.operands if isinstance(o.shape, ArrayShape)]
    floats = [t for t in types if t.is_floating]
    if all(t is own for t in floats):
        return None
    return reduce(higher_precision, floats)
