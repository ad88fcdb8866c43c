"""Wrong arithmetic: operations, factors, constants, lost NaN and zeros."""

from __future__ import annotations

from typing import Final

from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape
from hlotool.lab.faults.edit import Edit, FaultKind, Place
from hlotool.lab.faults.parts import FLOATS, INTEGERS, array_of, both, is_float, is_opcode, is_value

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


def saturated_at(shape: ArrayShape) -> float:
    """Beyond it numbers are cut: half of what normal numbers, or small integers, reach."""
    return 0.5 if shape.element_type.is_floating else 3


def _saturate(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    edit.replace(edit.op("minimum", target, edit.filled(saturated_at(shape), shape), shape=shape))


def _bfloat_scale(place: Place) -> bool:
    """1.001 is no number of 8 bits."""
    return place.array is not None and place.array.element_type.bits >= 32


ARITHMETIC = (
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


def _factor(edit: Edit, target: Instruction) -> None:
    _set(target, edit.choose((2.0, 10.0, 0.5)), 0)


def _slightly(edit: Edit, target: Instruction) -> None:
    _set(target, 1.01, 0)


def _plus_one(edit: Edit, target: Instruction) -> None:
    _set(target, 1, edit.choose((-1, 1)))


def _set(target: Instruction, factor: float, step: int) -> None:
    shape = array_of(target)
    assert target.literal is not None
    old = target.literal.array
    changed = old.astype("float64") * factor if factor != 1 else old.astype("int64") + step
    target.literal = Literal(shape, changed.astype(dtype_of(shape.element_type)))


def _is_scalar(place: Place) -> bool:
    literal = place.instruction.literal
    return (
        place.array is not None and place.array.rank == 0 and literal is not None and not literal.has_elided
    )


def _is_float_constant(place: Place) -> bool:
    if not _is_scalar(place) or place.array is None or place.array.element_type not in FLOATS:
        return False
    assert place.instruction.literal is not None
    value = abs(float(place.instruction.literal.array))
    return 0 < value < 1e4


def _is_integer_constant(place: Place) -> bool:
    return (
        _is_scalar(place)
        and place.array is not None
        and place.array.element_type in INTEGERS
        and _is_small(place)
    )


def _is_small(place: Place) -> bool:
    """Plus or minus one stays within the type."""
    assert place.instruction.literal is not None
    return 1 <= int(place.instruction.literal.array) <= 100


CONSTANTS = (
    FaultKind("wrong constant", "constant folding in the wrong unit", _is_float_constant, _factor),
    FaultKind(
        "constant 1 % off", "a constant rounded to the bits of a narrow type", _is_float_constant, _slightly
    ),
    FaultKind(
        "integer constant off by one",
        "a bound that counts elements taken for the last index",
        _is_integer_constant,
        _plus_one,
    ),
)


#: Numbers beyond it are clamped, as to the range of f16.
CLAMPED: Final = 6e4


def _nan_lost(edit: Edit, target: Instruction) -> None:
    edit.after()
    is_nan = edit.op("compare", target, target, direction="NE")
    edit.replace(edit.where(is_nan, edit.filled(0, array_of(target)), target))


def _zero_sign_lost(edit: Edit, target: Instruction) -> None:
    edit.after()
    zero = edit.filled(0, array_of(target))
    edit.replace(edit.where(edit.op("compare", target, zero, direction="EQ"), zero, target))


def _infinity_clamped(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    largest = edit.filled(CLAMPED, shape)
    edit.replace(edit.op("clamp", edit.filled(-CLAMPED, shape), target, largest, shape=shape))


SPECIALS = (
    FaultKind(
        "NaN lost", "a comparison that assumes that nothing is NaN", is_float, _nan_lost, "NaN", float("nan")
    ),
    FaultKind(
        "negative zero lost",
        "x + 0 introduced or removed without a look at -0",
        is_float,
        _zero_sign_lost,
        None,
        -0.0,
    ),
    FaultKind(
        "infinity clamped",
        "a clamp to the range of f16 in front of a conversion",
        is_float,
        _infinity_clamped,
        "infinity",
        float("inf"),
    ),
)
