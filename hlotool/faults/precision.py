"""Right in the reals, computed in too few bits or rounded the wrong way."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of, both, is_float, is_opcode
from hlotool.faults.kind import FaultKind, Place
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ElementType

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


def _is_wide(place: Place) -> bool:
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


KINDS = (
    FaultKind(
        "product in bf16",
        "a dot or convolution that a library computes in bf16",
        both(is_float, _is_wide, is_opcode("dot", "convolution")),
        _operands_in_bf16,
        "narrow precision",
    ),
    FaultKind(
        "function in bf16",
        "a fast approximation used for the precise function",
        both(is_float, _is_wide, is_opcode(*_TRANSCENDENTAL)),
        _result_in_bf16,
        "narrow precision",
    ),
    FaultKind(
        "accumulated in bf16",
        "a reduction whose accumulator has the type of its narrow operand",
        both(is_float, _is_wide, is_opcode("add"), _adds_in_a_reducer),
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
