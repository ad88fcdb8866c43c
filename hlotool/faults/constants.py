"""A constant has another value."""

from __future__ import annotations

from hlotool.faults.edit import Edit
from hlotool.faults.fits import FLOATS, INTEGERS, array_of
from hlotool.faults.kind import FaultKind, Place
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction


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


KINDS = (
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
