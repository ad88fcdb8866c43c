"""Data movement that moves to the wrong place."""

from __future__ import annotations

from dataclasses import replace

from hlotool.faults.attrs import ints, padding, slice_ranges
from hlotool.faults.edit import Edit
from hlotool.faults.fits import array_of, both, equal_dimensions, is_array, is_opcode, longest
from hlotool.faults.kind import FaultKind, Place
from hlotool.faults.values import shifted_by
from hlotool.ir.attributes import SliceDim
from hlotool.ir.module import Instruction


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


KINDS = (
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
