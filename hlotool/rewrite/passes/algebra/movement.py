"""Reshapes, transposes, broadcasts, slices, pads, concatenations: moving nothing, and moving twice."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.facts.recognition import integer_constant
from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.module import Instruction
from hlotool.rewrite.passes.algebra.rules import Op, Rewrite, rule


def _is_scalar_broadcast(value: Instruction) -> bool:
    return value.opcode == "broadcast" and not value.operands[0].dims


@rule("reshape", "broadcast", "transpose", "slice", "pad", "reverse", "concatenate", "copy")
def moves_nothing(op: Op) -> Rewrite | None:
    """A movement to the same dimensions in the same order, of everything, is its operand."""
    x, opcode = op.operands[0], op.instruction.opcode
    if x.shape != op.shape:
        return None
    size_one = {d for d, n in enumerate(op.shape.dims) if n == 1}
    dimensions = op.instruction.integers("dimensions", ())
    in_order = tuple(dimensions) == tuple(range(op.shape.rank))
    still = {
        "reshape": True,
        "slice": True,
        "copy": True,
        "broadcast": in_order,
        "transpose": in_order,
        "reverse": size_one.issuperset(dimensions),
        "concatenate": len(op.operands) == 1,
        "pad": all(
            p == PaddingDim(0, 0, p.interior) for p in op.instruction.listed("padding", PaddingDim, ())
        ),
    }
    return x if still[opcode] else None


@rule("reshape")
def reshape_reshape(op: Op) -> Rewrite | None:
    """The first of two reshapes does not matter."""
    (inner,) = op.operands
    return (lambda make: make.op("reshape", inner.operands[0])) if inner.opcode == "reshape" else None


@rule("transpose")
def transpose_transpose(op: Op) -> Rewrite | None:
    """Two transposes are one."""
    (inner,) = op.operands
    if inner.opcode != "transpose":
        return None
    first, second = inner.integers("dimensions"), op.instruction.integers("dimensions")
    order = tuple(first[d] for d in second)
    return lambda make: make.op("transpose", inner.operands[0], dimensions=order)


@rule("reverse")
def reverse_reverse(op: Op) -> Rewrite | None:
    """A reversal of the same dimensions undoes the first one."""
    (inner,) = op.operands
    if inner.opcode != "reverse":
        return None
    same = set(op.instruction.integers("dimensions")) == set(inner.integers("dimensions"))
    return inner.operands[0] if same else None


@rule("broadcast")
def broadcast_broadcast(op: Op) -> Rewrite | None:
    """Two broadcasts are one."""
    (inner,) = op.operands
    if inner.opcode != "broadcast":
        return None
    first, second = inner.integers("dimensions"), op.instruction.integers("dimensions")
    mapped = tuple(second[d] for d in first)
    return lambda make: make.op("broadcast", inner.operands[0], dimensions=mapped)


@rule("reshape", "transpose", "slice", "reverse", "dynamic-slice", "copy")
def movement_of_scalar(op: Op) -> Rewrite | None:
    """Any part or order of copies of one scalar is copies of that scalar."""
    x = op.operands[0]
    if not _is_scalar_broadcast(x) or not op.shape.dims:
        return None
    return lambda make: make.op("broadcast", x.operands[0], dimensions=())


@rule("slice")
def slice_slice(op: Op) -> Rewrite | None:
    """A slice of a slice is one slice."""
    (inner,) = op.operands
    if inner.opcode != "slice":
        return None
    pairs = zip(inner.listed("slice", SliceDim), op.instruction.listed("slice", SliceDim))
    dims = tuple(_composed(a, b) for a, b in pairs)
    return lambda make: make.op("slice", inner.operands[0], slice=dims)


def _composed(first: SliceDim, second: SliceDim) -> SliceDim:
    start = first.start + second.start * first.stride
    count = len(range(second.start, second.limit, second.stride))
    stride = first.stride * second.stride
    limit = start + (count - 1) * stride + 1 if count else start
    return SliceDim(start, limit, stride)


@rule("slice")
def slice_of_concatenate(op: Op) -> Rewrite | None:
    """A slice within one operand of a concatenation is a slice of that operand."""
    (joined,) = op.operands
    if joined.opcode != "concatenate":
        return None
    (dimension,) = joined.integers("dimensions")
    dims = op.instruction.listed("slice", SliceDim)
    begin, own = 0, dims[dimension]
    for part in joined.operands:
        end = begin + part.dims[dimension]
        if begin <= own.start < own.limit <= end:
            moved = SliceDim(own.start - begin, own.limit - begin, own.stride)
            inside = (*dims[:dimension], moved, *dims[dimension + 1 :])
            return lambda make, part=part, inside=inside: make.op("slice", part, slice=inside)
        begin = end
    return None


@rule("concatenate")
def concatenate_without_empty(op: Op) -> Rewrite | None:
    """Operands without elements add nothing to a concatenation."""
    (dimension,) = op.instruction.integers("dimensions")
    kept = [o for o in op.operands if o.dims[dimension]]
    if len(kept) == len(op.operands) or not kept:
        return None
    return lambda make: make.op("concatenate", *kept, dimensions=(dimension,))


@rule("dynamic-slice")
def dynamic_slice_of_all(op: Op) -> Rewrite | None:
    """A dynamic slice of the size of its operand starts at 0 and is the operand."""
    x = op.operands[0]
    return x if x.shape == op.shape else None


@rule("dynamic-slice")
def dynamic_slice_at_constant(op: Op) -> Rewrite | None:
    """A dynamic slice at constant indices, clamped so that it fits, is a slice."""
    x, *indices = op.operands
    read = _read(op, indices)
    return (lambda make: make.op("slice", x, slice=tuple(read))) if read is not None else None


def _places(
    indices: Sequence[Instruction], dims: tuple[int, ...], sizes: tuple[int, ...]
) -> list[int] | None:
    """Where a part begins whose indices are constants, clamped so that it fits; None of others."""
    starts = [integer_constant(i) for i in indices if not i.dims]
    known = [s for s in starts if s is not None]
    if len(known) != len(dims):
        return None
    return [max(0, min(s, n - size)) for s, n, size in zip(known, dims, sizes)]


@rule("dynamic-update-slice")
def update_of_all(op: Op) -> Rewrite | None:
    """An update of the size of the operand replaces all of it."""
    update = op.operands[1]
    return update if update.shape == op.shape else None


@rule("slice", "dynamic-slice")
def slice_of_update(op: Op) -> Rewrite | None:
    """A slice beside what a dynamic update at constant indices writes is a slice of what is updated."""
    updated, *own = op.operands
    if updated.opcode != "dynamic-update-slice":
        return None
    x, update, *indices = updated.operands
    written, read = _places(indices, x.dims, update.dims), _read(op, own)
    if written is None or read is None:
        return None
    beside = any(d.limit <= s or s + size <= d.start for d, s, size in zip(read, written, update.dims))
    attributes = op.instruction.attributes
    return (lambda make: make.op(op.instruction.opcode, x, *own, **attributes)) if beside else None


def _read(op: Op, indices: Sequence[Instruction]) -> Sequence[SliceDim] | None:
    """What a slice reads; None of a dynamic one whose indices are no constants."""
    if op.instruction.opcode == "slice":
        return op.instruction.listed("slice", SliceDim)
    places = _places(indices, op.operands[0].dims, op.shape.dims)
    return None if places is None else [SliceDim(s, s + n) for s, n in zip(places, op.shape.dims)]


@rule("transpose")
def transpose_of_size_one(op: Op) -> Rewrite | None:
    """A transpose that keeps the order of all dimensions but those of size 1 is a reshape."""
    (x,) = op.operands
    dims, order = x.dims, op.instruction.integers("dimensions")
    moved = [d for d in order if dims[d] != 1]
    if moved != sorted(moved) or order == tuple(range(len(order))):
        return None
    return lambda make: make.op("reshape", x)


@rule("sort")
def sort_of_one(op: Op) -> Rewrite | None:
    """An array with at most one element along the sorted dimension is sorted."""
    (dimension,) = op.instruction.integers("dimensions")
    (x, *others) = op.operands
    return x if not others and op.shape.dims[dimension] <= 1 and x.shape == op.shape else None
