"""Integer arithmetic in too few bits or with the wrong sign."""

from __future__ import annotations

from hlotool.faults.edit import Edit, of_type
from hlotool.faults.fits import array_of, both, is_integer, is_opcode
from hlotool.faults.kind import FaultKind, Place
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

_UNSIGNED = {
    ElementType.S8: ElementType.U8,
    ElementType.S16: ElementType.U16,
    ElementType.S32: ElementType.U32,
    ElementType.U8: ElementType.S8,
    ElementType.U16: ElementType.S16,
    ElementType.U32: ElementType.S32,
}


def _lost_carry(edit: Edit, target: Instruction) -> None:
    """Halves are added on their own: a carry from the low half is lost."""
    edit.after()
    shape = array_of(target)
    half = shape.element_type.bits // 2
    low_mask, high_mask = (
        edit.filled((1 << half) - 1, shape),
        edit.filled(
            -(1 << half) % (1 << shape.element_type.bits) if shape.element_type.is_unsigned else -(1 << half),
            shape,
        ),
    )
    first, second = target.operands
    parts = [
        edit.op("and", edit.op("add", edit.op("and", first, mask), edit.op("and", second, mask)), mask)
        for mask in (low_mask, high_mask)
    ]
    edit.replace(edit.op("or", *parts, shape=shape))


def _wrapped(edit: Edit, target: Instruction) -> None:
    """Wrapped around at half of the bits."""
    edit.after()
    shape = array_of(target)
    family = "s" if shape.element_type.is_signed else "u"
    narrow = ElementType(f"{family}{shape.element_type.bits // 2}")
    halved = edit.op("convert", target, shape=of_type(shape, narrow))
    edit.replace(edit.op("convert", halved, shape=shape))


def _sign_extended(edit: Edit, target: Instruction) -> None:
    operand = target.operands[0]
    shape = array_of(operand)
    other = of_type(shape, _UNSIGNED[shape.element_type])
    edit.set_operand(0, edit.op("bitcast-convert", operand, shape=other))


def _widens(place: Place) -> bool:
    if place.array is None:
        return False
    source = array_of(place.instruction.operands[0]).element_type
    return source in _UNSIGNED and place.array.element_type.bits > source.bits


def _other_shift(edit: Edit, target: Instruction) -> None:
    names = ("shift-right-logical", "shift-right-arithmetic")
    target.opcode = names[1 - names.index(target.opcode)]


def _is_wide(place: Place) -> bool:
    return place.array is not None and place.array.element_type.bits >= 16


KINDS = (
    FaultKind(
        "lost carry",
        "a wide addition in two halves without the carry",
        both(is_integer, is_opcode("add"), _is_wide),
        _lost_carry,
    ),
    FaultKind(
        "wraps at half the bits",
        "an integer narrowed by a wrong range analysis",
        both(is_integer, _is_wide),
        _wrapped,
    ),
    FaultKind(
        "wrong sign extension",
        "zero extension for sign extension",
        both(is_opcode("convert"), _widens),
        _sign_extended,
    ),
    FaultKind(
        "wrong shift",
        "a logical shift for an arithmetic one",
        both(is_integer, is_opcode("shift-right-logical", "shift-right-arithmetic")),
        _other_shift,
    ),
)
