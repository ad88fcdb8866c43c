"""Where windows begin: what slices, updates, gathers and scatters read as places, dimension by dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from hlotool.analysis.custom_calls import ANNOTATIONS
from hlotool.analysis.flow import computed_by
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.scale.places import Places
from hlotool.scale.terms import Size

#: Constants with more elements are tables, and no list of places.
_MOST: Final = 64
#: Integers from here on are not exact in f64, and no positions.
_EXACT: Final = 2.0**53
#: Values are not followed further than this.
_DEEPEST: Final = 60
#: What has the same value in every run.
_SOURCES: Final = frozenset({"constant", "iota"})


class Start(NamedTuple):
    """Where windows begin along one dimension.

    Attributes:
        reader: that takes the windows, or chooses where they begin.
        number: of the operand that says where.
        value: what says it.
        size: of the dimension.
        window: of the elements of it that are taken; None where they are several that are not told.
        column: of each vector of indices the element that is for the dimension, where `value` holds vectors
            of `columns` of them.
        columns: see `column`; 0 where it is not told which of the numbers in `value` is for the dimension.
        wraps: whether a negative number has the size added to it.
        drops: whether a window that does not fit is left out; else it is moved to where it does.
    """

    reader: Instruction
    number: int
    value: Instruction
    size: Size
    window: Size | None
    column: int = 0
    columns: int = 1
    wraps: bool = False
    drops: bool = False


def starts(places: Places, instruction: Instruction) -> Iterator[Start]:
    """What says where the windows of a slice, an update, a gather or a scatter begin in dimensions that
    they do not take as a whole."""
    operands, known = instruction.operands, places.known
    if instruction.opcode in ("dynamic-slice", "dynamic-update-slice"):
        is_slice = instruction.opcode == "dynamic-slice"
        first, part = (1, instruction) if is_slice else (2, operands[1])
        if len(operands) == first + len(known.of(operands[0])):
            for number, (size, window) in enumerate(zip(known.of(operands[0]), known.of(part))):
                if window.value < size.value:
                    yield Start(instruction, first + number, operands[first + number], size, window)
    elif instruction.opcode in ("gather", "scatter"):
        yield from _looked_up(places, instruction)


def _looked_up(places: Places, instruction: Instruction) -> Iterator[Start]:
    is_gather = instruction.opcode == "gather"
    number = 1 if is_gather else len(instruction.operands) // 2
    mapped = instruction.integers("start_index_map" if is_gather else "scatter_dims_to_operand_dims")
    indices = instruction.operands[number]
    is_last = instruction.integer("index_vector_dim") == len(indices.dims) - 1
    columns = [(indices, 0, 1)]
    if len(mapped) > 1:
        columns = [*joined(places, indices)] if is_last else []
    if len(columns) != len(mapped):
        columns = [(indices, 0, 0)] * len(mapped)
    wholes, windows = places.known.of(instruction.operands[0]), _windows(places, instruction, number)
    is_single = indices.array_shape.size == len(mapped)
    for (value, column, count), dimension in zip(columns, mapped):
        window = windows.get(dimension, places.known.sizes.fixed(1, "one element"))
        if window.value < wholes[dimension].value:
            told = window if is_single or window.value == 1 else None
            where = instruction, number, value, wholes[dimension], told
            yield Start(*where, column, count, drops=not is_gather)


def _windows(places: Places, instruction: Instruction, number: int) -> dict[int, Size]:
    """The sizes of windows by the dimension of the operand; of those without one element is taken."""
    is_gather = instruction.opcode == "gather"
    gone = instruction.integers("collapsed_slice_dims" if is_gather else "inserted_window_dims")
    gone += instruction.integers("operand_batching_dims" if is_gather else "input_batching_dims", ())
    part = instruction if is_gather else instruction.operands[number + 1]
    where = instruction.integers("offset_dims" if is_gather else "update_window_dims")
    kept = [d for d in range(len(instruction.operands[0].dims)) if d not in gone]
    return {d: places.known.of(part)[one] for d, one in zip(kept, where)}


def joined(places: Places, value: Instruction) -> Iterator[tuple[Instruction, int, int]]:
    """The elements of vectors along the last dimension: each with the value that has it, which one it is in
    there, and of how many; nothing where that cannot be told."""
    source, count = places.stripped(value), value.dims[-1] if value.dims else 0
    if source is None or not isinstance(source.shape, ArrayShape) or not source.dims:
        return
    if source.opcode == "concatenate":
        last = len(source.dims) - 1
        if source.integers("dimensions") == (last,) and source.dims[last] == len(source.operands) == count:
            yield from ((operand, 0, 1) for operand in source.operands)
    elif (
        source.opcode == "constant"
        and source.array_shape.size == value.array_shape.size
        and source.dims[-1] == count
        and _is_in_order(places, value, source)
    ):
        yield from ((value, column, count) for column in range(count))


def _is_in_order(places: Places, value: Instruction, source: Instruction) -> bool:
    """Whether nothing on the way from a source changes the order of elements."""
    found = places.spread.origin(value)
    while found is not None and found is not source:
        if found.opcode == "transpose":
            return False
        found = places.spread.origin(found.operands[0])
    return found is not None


def is_computed(places: Places, value: Instruction) -> bool:
    """Whether a compiler can tell where windows begin, from constants other than 0: what is made of them
    alone, or of several numbers one. The positions of an iota are all there are, and follow its size; and
    very many positions are a table, for which there is no other form."""
    source = places.stripped(value)
    if source is not None and source.opcode == "concatenate":
        return any(is_computed(places, operand) for operand in source.operands)
    if source is not None and source.attributes.get("custom_call_target") in ANNOTATIONS:
        return is_computed(places, source.operands[0])
    if value.array_shape.size > _MOST or (source is not None and source.opcode == "iota"):
        return False
    numbers = places.spread.of(value)
    return (numbers is None or any(numbers)) and _is_of_constants(places, value, {})


def _is_of_constants(
    places: Places, value: Instruction, known: dict[Instruction, bool], depth: int = 0
) -> bool:
    """Whether nothing but constants decides a value, as far as it is followed; what a loop counts is none."""
    if value not in known:
        known[value] = False
        if value in places.spread.calls.home and depth < _DEEPEST:
            found = computed_by(value, places.spread.calls)
            known[value] = bool(found) and all(
                not index and _is_made_of_constants(places, source, known, depth) for source, index in found
            )
    return known[value]


def _is_made_of_constants(
    places: Places, source: Instruction, known: dict[Instruction, bool], depth: int
) -> bool:
    """The same of what computes a value."""
    if source.opcode in _SOURCES:
        return True
    is_plain = bool(source.operands) and not list(source.called)
    return is_plain and all(_is_of_constants(places, one, known, depth + 1) for one in source.operands)


def whole_number(constant: Instruction) -> int | None:
    """The value of a constant of one element that is a whole number, of whatever type."""
    values = elements(constant)
    return values[0] if values is not None and len(values) == 1 else None


def elements(constant: Instruction) -> Sequence[int] | None:
    """The elements of a constant in row-major order; None where they are no whole numbers, or too many."""
    literal, shape = constant.literal, constant.shape
    if literal is None or literal.elided or not isinstance(shape, ArrayShape):
        return None
    kind = shape.element_type
    if not 0 < shape.size <= _MOST or not (kind.is_integer or kind.is_floating):
        return None
    array = literal.array.astype(np.float64).reshape(-1)
    is_whole = bool(np.all((np.abs(array) < _EXACT) & (array == np.rint(array))))
    return [int(value) for value in array] if is_whole else None
