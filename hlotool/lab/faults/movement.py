"""Elements that are wrong, alone or by regions, and elements that move to wrong places."""

from __future__ import annotations

from msgspec.structs import replace

from hlotool.ir.attributes import SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.lab.faults.edit import Edit, FaultKind, Place
from hlotool.lab.faults.parts import (
    array_of,
    both,
    equal_dimensions,
    ints,
    is_array,
    is_float,
    is_opcode,
    is_value,
    longest,
    padding,
    part,
    scaled,
    shifted_by,
    slice_ranges,
)

#: Vector lanes of the machine that "one lane" speaks of.
_LANES = 4


def _one_element(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    edit.replace(edit.where(edit.element(shape), scaled(edit, target, 1.001), target))


def _dropped(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    edit.replace(edit.where(edit.element(shape), edit.filled(0, shape), target))


def _duplicated(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    dimension = max(range(shape.rank), key=lambda d: shape.dims[d])
    neighbour = shifted_by(edit, target, dimension, 1)
    edit.replace(edit.where(edit.element(shape), neighbour, target))


def _lane(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    index = edit.index(shape, shape.rank - 1)
    s32 = array_of(index)
    lanes = edit.op("and", index, edit.filled(_LANES - 1, s32))
    lane = edit.filled(int(edit.rng.integers(_LANES)), s32)
    mask = edit.op("compare", lanes, lane, direction="EQ")
    edit.replace(edit.where(mask, scaled(edit, target, 1.01), target))


def _has_lanes(place: Place) -> bool:
    return place.array is not None and place.array.rank > 0 and place.array.dims[-1] > _LANES


ELEMENTS = (
    FaultKind(
        "one element × 1.001", "a race on one element", both(is_float, is_array), _one_element, "one element"
    ),
    FaultKind("dropped element", "a store that a mask leaves out", is_array, _dropped, "one element"),
    FaultKind(
        "duplicated element",
        "a vector load that reads one element twice",
        is_array,
        _duplicated,
        "one element",
    ),
    FaultKind(
        "one lane × 1.01",
        "a wrong shuffle in the code of one vector lane",
        both(is_array, _has_lanes),
        _lane,
        "one lane",
    ),
)


def _untouched(edit: Edit, target: Instruction) -> None:
    """The last quarter of the rows."""
    edit.after()
    shape = array_of(target)
    rows = shape.dims[0]
    limit = rows - max(1, rows // 4)
    edit.replace(edit.where(edit.is_at(shape, 0, limit, "GE"), edit.filled(0, shape), target))


def _remainder(edit: Edit, target: Instruction) -> None:
    """What is left after the last full vector of four along the innermost dimension."""
    edit.after()
    shape = array_of(target)
    limit = shape.dims[-1] // 4 * 4
    mask = edit.is_at(shape, shape.rank - 1, limit, "GE")
    edit.replace(edit.where(mask, edit.filled(0, shape), target))


def _has_remainder(place: Place) -> bool:
    return (
        place.array is not None
        and place.array.rank > 0
        and place.array.dims[-1] > 4
        and place.array.dims[-1] % 4 > 0
    )


def _row(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    row = int(edit.rng.integers(1, shape.dims[0]))
    neighbour = shifted_by(edit, target, 0, 1)
    edit.replace(edit.where(edit.is_at(shape, 0, row), neighbour, target))


def _has_rows(place: Place) -> bool:
    shape = place.array
    return shape is not None and shape.rank > 1 and shape.dims[0] > 2 and shape.size > shape.dims[0]


def _stale(edit: Edit, target: Instruction) -> None:
    edit.replace(edit.choose(_twins(target)))


def _twins(target: Instruction) -> list[Instruction]:
    """Operands whose buffer the result might have taken."""
    return [o for o in target.operands if o.shape == target.shape and not o.opcode.endswith("-start")]


def _half_stale(edit: Edit, target: Instruction) -> None:
    """The second half of the rows still holds the operand."""
    edit.after()
    shape = array_of(target)
    old = edit.choose(_twins(target))
    edit.replace(edit.where(edit.is_at(shape, 0, shape.dims[0] // 2, "GE"), old, target))


def _has_twin(place: Place) -> bool:
    return bool(_twins(place.instruction)) and place.instruction.opcode not in ("copy", "reshape")


def _has_two_rows(place: Place) -> bool:
    return place.array is not None and place.array.rank > 0 and place.array.dims[0] > 1


def _blocks(edit: Edit, target: Instruction) -> None:
    edit.after()
    shape = array_of(target)
    dimension = _even_dimension(shape)
    half = shape.dims[dimension] // 2
    first, second = part(edit, target, dimension, 0, half), part(edit, target, dimension, half, 2 * half)
    edit.replace(edit.op("concatenate", second, first, shape=shape, dimensions=(dimension,)))


def _even_dimension(shape: ArrayShape) -> int:
    return max(range(shape.rank), key=lambda d: shape.dims[d] * (shape.dims[d] % 2 == 0))


def _has_even_dimension(place: Place) -> bool:
    return place.array is not None and any(n > 1 and n % 2 == 0 for n in place.array.dims)


REGIONS = (
    FaultKind(
        "untouched rows",
        "a grid of too few blocks: the last quarter of the output is never written",
        both(is_array, _has_two_rows),
        _untouched,
        "untouched region",
    ),
    FaultKind(
        "dropped remainder",
        "a vectorised loop without the loop for what is left over",
        both(is_array, _has_remainder),
        _remainder,
        "untouched region",
    ),
    FaultKind(
        "row repeats its neighbour",
        "an off-by-one row index",
        both(is_array, _has_rows),
        _row,
        "off by one row",
    ),
    FaultKind(
        "stale buffer",
        "buffer assignment lets a reader see the operand's memory before it is overwritten",
        both(is_value, _has_twin),
        _stale,
        "stale value",
    ),
    FaultKind(
        "half stale buffer",
        "a missing barrier between two halves of an in-place update",
        both(is_array, _has_twin, _has_two_rows),
        _half_stale,
        "stale value",
    ),
    FaultKind(
        "swapped blocks",
        "two tiles stored in each other's place",
        both(is_array, _has_even_dimension),
        _blocks,
        "swap",
    ),
)


def _shift(edit: Edit, target: Instruction) -> None:
    edit.after()
    dimension = longest(array_of(target).dims)
    edit.replace(shifted_by(edit, target, dimension, 1))


def _transposed(edit: Edit, target: Instruction) -> None:
    """Two dimensions change places; the memory is read in the other order where they differ in size."""
    edit.after()
    shape = array_of(target)
    i, j = edit.choose(_matrix_dimensions(shape.dims))
    permutation = list(range(shape.rank))
    permutation[i], permutation[j] = j, i
    turned = edit.op("transpose", target, dimensions=tuple(permutation))
    same = array_of(turned).dims == shape.dims
    edit.replace(turned if same else edit.op("reshape", turned, shape=shape))


def _matrix_dimensions(dims: tuple[int, ...]) -> list[tuple[int, int]]:
    pairs = [(i, j) for i in range(len(dims)) for j in range(i + 1, len(dims)) if min(dims[i], dims[j]) > 1]
    return equal_dimensions(dims) or pairs


def _is_matrix(place: Place) -> bool:
    return place.array is not None and bool(_matrix_dimensions(place.array.dims))


def _reversed(edit: Edit, target: Instruction) -> None:
    edit.after()
    dimension = longest(array_of(target).dims)
    edit.replace(edit.op("reverse", target, dimensions=(dimension,)))


def _slice(edit: Edit, target: Instruction) -> None:
    ranges = list(slice_ranges(target))
    moved = edit.choose(_movable(target))
    ranges[moved[0]] = moved[1]
    edit.set_attributes(slice=tuple(ranges))


def _movable(target: Instruction) -> list[tuple[int, SliceDim]]:
    """Each dimension with a range that begins and ends one element earlier or later."""
    found = []
    sizes = array_of(target.operands[0]).dims
    for dimension, one in enumerate(slice_ranges(target)):
        for step in (-1, 1):
            moved = SliceDim(one.start + step, one.limit + step, one.stride)
            if moved.start >= 0 and moved.limit <= sizes[dimension] and moved.limit > moved.start:
                found.append((dimension, moved))
    return found


def _pad(edit: Edit, target: Instruction) -> None:
    """One element of padding goes to the other end of the longest dimension that has one."""
    changed = list(padding(target))
    dimension = edit.choose(_padded(target))
    one = changed[dimension]
    step = 1 if one.high > 0 else -1
    changed[dimension] = replace(one, low=one.low + step, high=one.high - step)
    edit.set_attributes(padding=tuple(changed))


def _padded(target: Instruction) -> list[int]:
    return [d for d, one in enumerate(padding(target)) if one.low > 0 or one.high > 0]


def _concatenate(edit: Edit, target: Instruction) -> None:
    first, second = edit.choose(_like_parts(target))
    operands = list(target.operands)
    operands[first], operands[second] = operands[second], operands[first]
    edit.set_operands(operands)


def _like_parts(target: Instruction) -> list[tuple[int, int]]:
    """Pairs of different operands of the same shape."""
    parts = list(enumerate(target.operands))
    return [(i, j) for i, a in parts for j, b in parts[i + 1 :] if a is not b and a.shape == b.shape]


def _broadcast(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(dimensions=edit.choose(_other_dimensions(target)))


def _other_dimensions(target: Instruction) -> list[tuple[int, ...]]:
    """`dimensions` of a broadcast with one of them moved to another dimension of the same size."""
    mapped = ints(target, "dimensions")
    sizes = array_of(target).dims
    found = []
    for position, old in enumerate(mapped):
        for new, size in enumerate(sizes):
            moved = (*mapped[:position], new, *mapped[position + 1 :])
            if new not in mapped and size == sizes[old] > 1 and list(moved) == sorted(moved):
                found.append(moved)
    return found


def _transpose(edit: Edit, target: Instruction) -> None:
    permutation = list(ints(target, "dimensions"))
    i, j = edit.choose(equal_dimensions(array_of(target).dims))
    permutation[i], permutation[j] = permutation[j], permutation[i]
    edit.set_attributes(dimensions=tuple(permutation))


def _has_equal_dimensions(place: Place) -> bool:
    return place.array is not None and bool(equal_dimensions(place.array.dims))


def _iota(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(iota_dimension=edit.choose(_other_iota(target)))


def _other_iota(target: Instruction) -> list[int]:
    return [
        d
        for d, size in enumerate(array_of(target).dims)
        if d != target.attributes["iota_dimension"] and size > 1
    ]


def _reverse(edit: Edit, target: Instruction) -> None:
    edit.replace(target.operands[0])


MOVEMENT = (
    FaultKind("shifted", "an address that is one element off", is_array, _shift, "shift"),
    FaultKind(
        "transposed",
        "a layout that is read row-major instead of column-major",
        both(is_array, _is_matrix),
        _transposed,
        "transpose",
    ),
    FaultKind("reversed", "a negative stride taken for a positive one", is_array, _reversed, "reversed"),
    FaultKind(
        "slice off by one",
        "a slice's start moved by one",
        lambda p: is_opcode("slice")(p) and bool(_movable(p.instruction)),
        _slice,
        "shift",
    ),
    FaultKind(
        "padding at the wrong end",
        "low and high padding mixed up",
        lambda p: is_opcode("pad")(p) and bool(_padded(p.instruction)),
        _pad,
        "shift",
    ),
    FaultKind(
        "concatenated in the wrong order",
        "operands of a concatenation sorted by address",
        lambda p: is_opcode("concatenate")(p) and bool(_like_parts(p.instruction)),
        _concatenate,
        "swap",
    ),
    FaultKind(
        "broadcast along the wrong dimension",
        "a dimension number not adapted after a reshape",
        lambda p: is_opcode("broadcast")(p) and bool(_other_dimensions(p.instruction)),
        _broadcast,
        "transpose",
    ),
    FaultKind(
        "wrong permutation",
        "two transposes folded in the wrong order",
        both(is_opcode("transpose"), _has_equal_dimensions),
        _transpose,
        "transpose",
    ),
    FaultKind(
        "iota along the wrong dimension",
        "a dimension number not adapted after a transpose",
        lambda p: is_opcode("iota")(p) and bool(_other_iota(p.instruction)),
        _iota,
    ),
    FaultKind("reverse dropped", "a reverse taken for a no-op", is_opcode("reverse"), _reverse, "reversed"),
)
