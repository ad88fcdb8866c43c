"""Elementwise arithmetic that computes something else."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of, both, is_float, is_opcode, is_value
from hlotool.faults.kind import FaultKind, Place
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with

_ASYMMETRIC = ("subtract", "divide", "power", "remainder", "atan2", "shift-left", "complex")
_CONFUSED = {
    "add": "subtract",
    "subtract": "add",
    "multiply": "add",
    "divide": "multiply",
    "maximum": "minimum",
    "minimum": "maximum",
    "and": "or",
    "or": "and",
    "xor": "or",
    "sine": "cosine",
    "cosine": "sine",
    "exponential": "exponential-minus-one",
    "floor": "ceil",
    "ceil": "floor",
    "sqrt": "rsqrt",
    "rsqrt": "sqrt",
    "tanh": "logistic",
}


def _swap(edit: Edit, target: Instruction) -> None:
    first, second = target.operands
    edit.set_operands((second, first))


def _different_operands(place: Place) -> bool:
    first, second = place.instruction.operands
    return first is not second


def _confuse(edit: Edit, target: Instruction) -> None:
    target.opcode = _CONFUSED[target.opcode]


def _scale(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    edit.replace(edit.op("multiply", target, edit.filled(1.001, shape), shape=shape))


def _big_scale(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    edit.replace(edit.op("multiply", target, edit.filled(edit.choose((0.5, 2, 4)), shape), shape=shape))


def _negate(edit: Edit, target: Instruction) -> None:
    edit.after()
    edit.replace(edit.op("negate", target, shape=target.shape))


def _is_signed(place: Place) -> bool:
    return place.array is not None and not place.array.element_type.is_unsigned


def _missing_addend(edit: Edit, target: Instruction) -> None:
    edit.replace(target.operands[int(edit.rng.integers(2))])


def _missing_bias(edit: Edit, target: Instruction) -> None:
    edit.replace(next(o for o in target.operands if o.opcode != "broadcast"))


def _adds_bias(place: Place) -> bool:
    return sum(o.opcode == "broadcast" for o in place.instruction.operands) == 1


def _is_plain_sum(place: Place) -> bool:
    """Also deep in a reducer: there the sum forgets what it had, or what comes."""
    return not _adds_bias(place)


def _saturate(edit: Edit, target: Instruction) -> None:
    """Beyond half of what normal numbers, or small integers, reach."""
    edit.after()
    shape = array_of(target)
    high = edit.filled(0.5 if shape.element_type.is_floating else 3, shape)
    edit.replace(edit.op("minimum", target, high, shape=shape))


def _bfloat_scale(place: Place) -> bool:
    """1.001 is no number of 8 bits."""
    return place.array is not None and place.array.element_type.bits >= 32


KINDS = (
    FaultKind(
        "swapped operands",
        "a commuted operation that does not commute",
        both(is_opcode(*_ASYMMETRIC), _different_operands),
        _swap,
    ),
    FaultKind(
        "wrong opcode",
        "a pattern that matches a sibling of the operation it means",
        both(is_value, is_opcode(*_CONFUSED), lambda p: _is_defined(p)),
        _confuse,
    ),
    FaultKind(
        "scale 1.001",
        "an approximation of a constant factor",
        both(is_float, _bfloat_scale),
        _scale,
        "constant factor",
    ),
    FaultKind(
        "scale by a power of two",
        "a scale applied twice, or not at all",
        is_float,
        _big_scale,
        "constant factor",
    ),
    FaultKind(
        "sign", "a negation lost when two of them are merged", both(is_value, _is_signed), _negate, "sign"
    ),
    FaultKind(
        "missing bias",
        "the epilogue of a library call without its bias",
        both(is_value, is_opcode("add"), _adds_bias),
        _missing_bias,
        "missing addend",
    ),
    FaultKind(
        "missing addend",
        "an add simplified away as if the other side were zero",
        both(is_value, is_opcode("add"), _is_plain_sum),
        _missing_addend,
        "missing addend",
    ),
    FaultKind(
        "saturation", "a clamp of a narrower type kept after widening", is_value, _saturate, "saturation"
    ),
)


def _is_defined(place: Place) -> bool:
    """The other operation exists for this type."""
    shape = place.array
    if shape is None:
        return False
    bitwise = place.instruction.opcode in opcodes_with(Trait.BITWISE)
    return shape.element_type.is_integer if bitwise else True
