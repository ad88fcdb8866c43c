"""Demands on moved data (reshape, transpose, slice, concatenate, select), and guards in the program.

A guard is a look that a program takes at a value before it uses it: `select(x > 0, x, 1)` is above 0 for
every x.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from msgspec.structs import replace

from hlotool.facts import recognition
from hlotool.facts.demands import AnyBits, Demand, InRange, Matrix, Ordered
from hlotool.facts.flow import CallGraph, Part, computed_by, handed_on
from hlotool.ir.attributes import SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.partitioning import ENTERS_REGION, LEAVES_REGION
from hlotool.ir.types import ArrayShape, TupleShape

#: Keep every element in its place.
_IN_PLACE = frozenset(("clamp", "convert", "copy", "custom-call", "reduce-precision", "select"))
#: Repeat or drop elements at positions that the data decides.
_SHUFFLING = frozenset(("broadcast", "dynamic-slice", "dynamic-update-slice", "gather", "pad", "scatter"))


#: Operand i becomes element i of the result.
_ELEMENT_BY_ELEMENT = frozenset(
    ("all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "sort")
)


def is_element_by_element(instruction: Instruction) -> bool:
    """Whether each operand becomes an element of the result, or all of it where there is but one."""
    if instruction.opcode == "custom-call":
        # JAX lets all values cross the border of a manual region in one call.
        is_border = instruction.custom_call_target in ENTERS_REGION | LEAVES_REGION
        return is_border and isinstance(instruction.shape, TupleShape)
    return instruction.opcode in _ELEMENT_BY_ELEMENT


def moved_to_operand(instruction: Instruction, number: int, demand: Demand) -> Demand | None:
    """What a demand on one element of the result asks of its operand, which may be larger or smaller."""
    result = instruction.shape
    element = result.elements[number] if isinstance(result, TupleShape) else result
    if isinstance(element, ArrayShape) and element.dims == instruction.operands[number].dims:
        return demand
    if isinstance(demand, InRange):
        return InRange((demand.narrowest,), None, demand.required)
    return None if isinstance(demand, Ordered | Matrix) else demand


def carried(instruction: Instruction) -> range:
    """Numbers of the operands whose elements reappear in the result."""
    opcode, count = instruction.opcode, len(instruction.operands)
    if opcode == "custom-call":
        known = instruction.custom_call_target in recognition.TRANSPARENT
        return range(1 if known and count else 0)
    if opcode == "scatter":
        return range(0, 3, 2) if count == 3 else range(0)
    return range(1) if opcode == "pad" else instruction.row.carried(count)


def moved(instruction: Instruction, demand: Demand) -> Iterator[tuple[int, Demand]]:
    """What a demand on the result of a data movement asks of its operands, by number."""
    operands = carried(instruction)
    if len(operands) == 2 and _wraps_negative(instruction):
        operands = range(2, 3)
    for number in operands:
        passed = _through(instruction, number, demand)
        if passed is not None:
            yield number, passed


def _wraps_negative(instruction: Instruction) -> bool:
    """`select(i < 0, i + n, i)`: only the last operand is worth a demand, which makes the others moot."""
    if instruction.opcode != "select":
        return False
    predicate, _, plain = instruction.operands
    if predicate.opcode != "compare" or predicate.text("direction") != "LT":
        return False
    return predicate.operands[0] is plain


def _through(instruction: Instruction, number: int, demand: Demand) -> Demand | None:
    if isinstance(demand, InRange):
        return _range_through(instruction, number, demand)
    if isinstance(demand, Ordered):
        return _order_through(instruction, number, demand)
    if isinstance(demand, Matrix):
        return _matrix_through(instruction, number, demand)
    if isinstance(demand, AnyBits) and instruction.opcode in _SHUFFLING:
        return None
    return demand


def _range_through(instruction: Instruction, number: int, demand: InRange) -> InRange:
    if demand.axis is None:
        return demand
    axis = _axis_before(instruction, number, demand.axis)
    if axis is None:
        return InRange((demand.narrowest,), None, demand.required)
    return InRange(demand.intervals[_positions(instruction, number, demand.axis)], axis, demand.required)


def _positions(instruction: Instruction, number: int, axis: int) -> slice:
    """Which positions along `axis` of the result come from the operand."""
    if instruction.opcode != "concatenate" or instruction.integers("dimensions") != (axis,):
        return slice(None)
    sizes = [operand.dims[axis] for operand in instruction.operands]
    start = sum(sizes[:number])
    return slice(start, start + sizes[number])


def _axis_before(instruction: Instruction, number: int, axis: int) -> int | None:
    """The operand's dimension that becomes dimension `axis` of the result, all positions kept in order."""
    match instruction.opcode:
        case opcode if opcode in _IN_PLACE:
            return axis if instruction.operands[number].dims == instruction.dims else None
        case "concatenate":
            return axis
        case "transpose":
            return instruction.integers("dimensions")[axis]
        case "broadcast":
            dimensions = instruction.integers("dimensions", ())
            return dimensions.index(axis) if axis in dimensions else None
        case "slice":
            return axis if _takes_all(instruction, axis) else None
        case "reshape" | "bitcast":
            return _reshaped_axis(instruction.operands[0].dims, instruction.dims, axis)
    return None


def _takes_all(instruction: Instruction, axis: int) -> bool:
    return instruction.listed("slice", SliceDim)[axis] == SliceDim(0, instruction.operands[0].dims[axis])


def _reshaped_axis(before: tuple[int, ...], after: tuple[int, ...], axis: int) -> int | None:
    """The dimension of equal size with as many elements behind it."""
    behind = prod(after[axis + 1 :])
    for candidate, size in enumerate(before):
        if size == after[axis] and prod(before[candidate + 1 :]) == behind:
            return candidate
    return None


def _order_through(instruction: Instruction, number: int, demand: Ordered) -> Ordered | None:
    if instruction.opcode in _SHUFFLING:
        return None
    batch = demand.batch if instruction.operands[number].dims == instruction.dims else ()
    ascending = demand.ascending and instruction.opcode not in ("reverse", "transpose")
    if demand.axis is None:
        return replace(demand, ascending=ascending, batch=batch)
    axis = _axis_before(instruction, number, demand.axis)
    if axis is None and instruction.dims[demand.axis] != 1:
        return None
    return replace(demand, ascending=ascending, axis=axis, batch=batch)


def _matrix_through(instruction: Instruction, number: int, demand: Matrix) -> Matrix | None:
    rank_after, rank_before = len(instruction.dims), len(instruction.operands[number].dims)
    if rank_after < 2 or rank_before < 2 or instruction.opcode in ("concatenate", "gather", "reverse"):
        return None
    last_two = [_axis_before(instruction, number, rank_after - i) for i in (2, 1)]
    if last_two == [rank_before - 2, rank_before - 1]:
        return demand
    return Matrix(demand.kind.transposed) if last_two == [rank_before - 1, rank_before - 2] else None


#: On the way from a predicate to the comparisons that it is made of.
_LOGIC: Final = opcodes_with(Trait.BITWISE, Trait.REGROUPS) | {"slice"}
#: They keep a number what it is, or at least its sign: what is asked of the result is asked of the operand.
_KEEPS: Final = frozenset(
    {"broadcast", "reshape", "bitcast", "transpose", "copy", "convert", "abs", "negate"}
)
#: Instructions visited for one predicate.
_MOST: Final = 50


def is_guarded(instruction: Instruction, number: int, calls: CallGraph) -> bool:
    """Whether an operand of a select is only taken where a comparison of that same value says so.

    Args:
        instruction: of the program; False for all but selects.
        number: of the operand.
        calls: of the program.
    """
    if instruction.opcode != "select" or number == 0:
        return False
    own = _origins(instruction.operands[number], calls)
    compared = (
        _origins(operand, calls)
        for comparison in _comparisons(instruction.operands[0], calls)
        for operand in comparison.operands
    )
    return any(not own.isdisjoint(origins) for origins in compared)


def _comparisons(predicate: Instruction, calls: CallGraph) -> Iterator[Instruction]:
    """The comparisons that a predicate is made of, in this function or in those that call it."""
    pending: list[Part] = [(predicate, ())]
    seen: set[Part] = set()
    while pending and len(seen) < _MOST:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        if part[0].opcode == "compare":
            yield part[0]
        elif part[0].opcode in _LOGIC:
            pending += [(operand, ()) for operand in part[0].operands]
        else:
            pending += handed_on(part, calls)


def _origins(value: Instruction, calls: CallGraph) -> set[Part]:
    """What a value is, apart from its layout, its type and its sign."""
    found: set[Part] = set()
    pending = list(computed_by(value, calls))
    while pending:
        part = pending.pop()
        if part[0].opcode in _KEEPS:
            pending += computed_by(part[0].operands[0], calls)
        elif part[0].literal is None:
            found.add(part)
    return found
