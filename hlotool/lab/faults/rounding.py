"""Wrong widths: precision that is lost, integers that wrap, and what is below the rounding of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.facts.flow import reducing_opcode
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.lab.faults.edit import Edit, FaultKind, Place, of_type
from hlotool.lab.faults.parts import (
    FLOATS,
    array_of,
    both,
    is_array,
    is_float,
    is_integer,
    is_opcode,
)

_TRANSCENDENTAL = opcodes_with(Trait.TRANSCENDENTAL) - opcodes_with(Trait.EXPANDED) | {"divide"}
_ROUNDINGS = sorted(opcodes_with(Trait.TO_INTEGER), reverse=True)


def _rounded(edit: Edit, value: Instruction) -> Instruction:
    """As bf16 holds it; XLA may drop a pair of conversions, but not this."""
    return edit.op("reduce-precision", value, exponent_bits=8, mantissa_bits=7)


def _operands_in_bf16(edit: Edit, target: Instruction) -> None:
    for number, operand in enumerate(target.operands[:2]):
        edit.set_operand(number, _rounded(edit, operand))


def _result_in_bf16(edit: Edit, target: Instruction) -> None:
    edit.after()
    edit.replace(_rounded(edit, target))


def _is_wide_float(place: Place) -> bool:
    return place.array is not None and place.array.element_type in (ElementType.F32, ElementType.F64)


def _adds_in_a_reducer(place: Place) -> bool:
    return (
        bool(place.callers & {"reduce", "reduce-window", "scatter"})
        and place.instruction is place.computation.root
    )


def _other_rounding(edit: Edit, target: Instruction) -> None:
    target.opcode = edit.choose([name for name in _ROUNDINGS if name != target.opcode])


def _nearest_instead_of_zero(edit: Edit, target: Instruction) -> None:
    operand = target.operands[0]
    edit.set_operand(0, edit.op("round-nearest-even", operand, shape=operand.shape))


def _float_to_integer(place: Place) -> bool:
    source = array_of(place.instruction.operands[0]).element_type
    return (
        place.array is not None
        and place.array.element_type.is_integer
        and source.is_floating
        and source.bits >= 16
    )


PRECISION = (
    FaultKind(
        "product in bf16",
        "a dot or convolution that a library computes in bf16",
        both(is_float, _is_wide_float, is_opcode("dot", "convolution")),
        _operands_in_bf16,
        "narrow precision",
    ),
    FaultKind(
        "function in bf16",
        "a fast approximation used for the precise function",
        both(is_float, _is_wide_float, is_opcode(*_TRANSCENDENTAL)),
        _result_in_bf16,
        "narrow precision",
    ),
    FaultKind(
        "accumulated in bf16",
        "a reduction whose accumulator has the type of its narrow operand",
        both(is_float, _is_wide_float, is_opcode("add"), _adds_in_a_reducer),
        _result_in_bf16,
        "narrow precision",
    ),
    FaultKind(
        "wrong rounding mode",
        "round down for round to nearest",
        both(is_float, is_opcode(*_ROUNDINGS)),
        _other_rounding,
    ),
    FaultKind(
        "rounds instead of truncating",
        "an instruction of the wrong rounding mode for a conversion",
        both(is_opcode("convert"), _float_to_integer),
        _nearest_instead_of_zero,
    ),
)


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


def _is_wide_integer(place: Place) -> bool:
    return place.array is not None and place.array.element_type.bits >= 16


INTEGER_WIDTHS = (
    FaultKind(
        "lost carry",
        "a wide addition in two halves without the carry",
        both(is_integer, is_opcode("add"), _is_wide_integer),
        _lost_carry,
    ),
    FaultKind(
        "wraps at half the bits",
        "an integer narrowed by a wrong range analysis",
        both(is_integer, _is_wide_integer),
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


#: Ulps by which a constant is off: one is what a compiler may round, and is not seen on purpose.
_ULPS = 3
#: Terms of what counts as a long sum.
_LONG = 48
#: Constants up to this size that are added to something are epsilons.
_EPSILON = 1e-3


# They are no part of the catalogue that verdicts are measured with: no result of a run tells them from legal
# executions. As functions of real numbers the programs differ all the same.


def _scalar_value(instruction: Instruction) -> float | None:
    """The value of a float constant without dimensions; None for others, 0 and what is not finite."""
    shape, literal = instruction.shape, instruction.literal
    if literal is None or literal.has_elided or not isinstance(shape, ArrayShape):
        return None
    if shape.rank or shape.element_type not in FLOATS:
        return None
    value = float(literal.array)
    return value if value and np.isfinite(value) else None


def _is_usual(place: Place) -> bool:
    """A constant of a size that matters: neither a mask nor next to nothing."""
    value = _scalar_value(place.instruction)
    return value is not None and 1e-8 < abs(value) < 1e4


def _readers(place: Place) -> list[Instruction]:
    """Who reads the value, broadcasts and conversions passed over."""
    found: list[Instruction] = []
    pending = [place.instruction]
    while pending:
        value = pending.pop()
        for reader in place.computation.instructions:
            if value in reader.operands:
                (pending if reader.opcode in ("broadcast", "convert", "reshape") else found).append(reader)
    return found


def _is_epsilon(place: Place) -> bool:
    value = _scalar_value(place.instruction)
    if value is None or not 0 < abs(value) <= _EPSILON:
        return False
    return any(reader.opcode in ("add", "maximum") for reader in _readers(place))


def _set(target: Instruction, value: Any) -> None:
    shape = array_of(target)
    target.literal = Literal(shape, np.asarray(value).astype(dtype_of(shape.element_type)))


def _dropped(edit: Edit, target: Instruction) -> None:
    _set(target, 0.0)


def _larger(edit: Edit, target: Instruction) -> None:
    value = _scalar_value(target)
    assert value is not None
    _set(target, value * 1.1)


def _slightly(edit: Edit, target: Instruction) -> None:
    value = _scalar_value(target)
    assert value is not None
    _set(target, value * (1 + edit.choose((1e-5, -1e-5, 1e-4, -1e-4))))


def _ulps(edit: Edit, target: Instruction) -> None:
    shape = array_of(target)
    assert target.literal is not None
    bits = np.dtype(f"i{shape.element_type.bits // 8}")
    moved = target.literal.array.view(bits) + bits.type(edit.choose((-_ULPS, _ULPS)))
    target.literal = Literal(shape, np.asarray(moved).view(dtype_of(shape.element_type)))


def _little(target: Instruction) -> float:
    """A factor that is nearly 1: two ulps of a narrow type, more of a wide one."""
    return 1.015625 if array_of(target).element_type.bits <= 16 else 1.00002


def _one_element(edit: Edit, target: Instruction) -> None:
    edit.after()
    edit.replace(_with_one_off(edit, target))


def _one_term(edit: Edit, target: Instruction) -> None:
    edit.set_operand(0, _with_one_off(edit, target.operands[0]))


def _with_one_off(edit: Edit, value: Instruction) -> Instruction:
    shape = array_of(value)
    scaled = edit.op("multiply", value, edit.filled(_little(value), shape), shape=shape)
    return edit.where(edit.element(shape), scaled, value)


def _is_long_sum(place: Place) -> bool:
    instruction = place.instruction
    terms = array_of(instruction.operands[0])
    if terms.element_type not in FLOATS or terms.rank == 0:
        return False
    if instruction.opcode == "dot":
        return array_of(instruction).size * _LONG <= terms.size * array_of(instruction.operands[1]).size
    if reducing_opcode(instruction.computation("to_apply")) != "add" or place.array is None:
        return False
    return terms.size >= _LONG * max(1, place.array.size)


def _is_narrow(place: Place) -> bool:
    return place.array is not None and place.array.element_type in (ElementType.BF16, ElementType.F16)


BELOW_ROUNDING = (
    FaultKind("epsilon dropped", "an addend simplified away as too small", _is_epsilon, _dropped),
    FaultKind("epsilon 10 % off", "another layer's epsilon", _is_epsilon, _larger),
    FaultKind(
        "constant slightly off",
        "a constant copied with too few digits",
        both(_is_usual, lambda place: not _is_narrow(place)),
        _slightly,
    ),
    FaultKind("constant 3 ulps off", "a constant folded in steps that round", _is_usual, _ulps),
    FaultKind("one element slightly off", "a race on one element", both(is_float, is_array), _one_element),
    FaultKind(
        "one element of a narrow product",
        "a tile's edge in another precision",
        both(is_float, is_array, _is_narrow, is_opcode("dot", "multiply", "convolution")),
        _one_element,
    ),
    FaultKind(
        "one term of a long sum",
        "the last element of a vector read twice",
        both(is_opcode("reduce", "dot"), _is_long_sum),
        _one_term,
    ),
)
