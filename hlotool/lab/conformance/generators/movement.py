"""Opcodes that move data, over all element types; what they return must be equal to the bit."""

from __future__ import annotations

import numpy as np

from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.builder import array
from hlotool.ir.types import Layout
from hlotool.lab.conformance.generators.cases import ALL, INTEGERS, Draft, generates, values

Dims = tuple[int, ...]

#: XLA's CPU compiler dies on types of two bits in concatenate and pad.
FROM_FOUR_BITS = tuple(t for t in ALL if t not in ("s2", "u2"))


def some_layout(draft: Draft, rank: int) -> Layout:
    """A random order of dimensions."""
    return Layout(tuple(int(d) for d in draft.rng.permutation(rank)))


@generates("broadcast")
def broadcast(draft: Draft, opcode: str) -> None:
    """Dimensions in any order."""
    target = draft.dims(high_rank=4)
    order = [int(d) for d in draft.rng.permutation(len(target))[: draft.size(0, len(target))]]
    dimensions = tuple(order if draft.chance(0.3) else sorted(order))
    x = draft.operand(draft.choice(ALL), tuple(target[d] for d in dimensions))
    draft.op(opcode, x, shape=array(x.shape.element_type, *target), dimensions=dimensions)  # type: ignore[union-attr]


@generates("concatenate")
def concatenate(draft: Draft, opcode: str) -> None:
    """One to four parts, empty ones among them."""
    kind, dims = draft.choice(FROM_FOUR_BITS), draft.dims(low_rank=1)
    axis = draft.size(0, len(dims) - 1)
    parts = [(*dims[:axis], draft.size(0, 4), *dims[axis + 1 :]) for _ in range(draft.size(1, 4))]
    draft.op(opcode, *(draft.operand(kind, part) for part in parts), dimensions=(axis,))


@generates("copy", "opt-barrier")
def identity(draft: Draft, opcode: str) -> None:
    """Values in any layout."""
    kind, dims = draft.choice(ALL), draft.dims()
    x = draft.argument(kind, values(draft.rng, kind, dims), some_layout(draft, len(dims)))
    draft.op(opcode, x)


@generates("pad")
def pad(draft: Draft, opcode: str) -> None:
    """Padding below, above and between, also negative."""
    kind, dims = draft.choice(FROM_FOUR_BITS), draft.dims(low_rank=1)
    padding = []
    for size in dims:
        interior = draft.size(0, 2)
        grown = size + max(0, size - 1) * interior
        low = draft.size(-(grown // 2), 3)
        padding.append(PaddingDim(low, draft.size(-((grown + min(0, low)) // 2), 3), interior))
    draft.op(opcode, draft.operand(kind, dims), draft.operand(kind, ()), padding=tuple(padding))


@generates("reshape")
def reshape(draft: Draft, opcode: str) -> None:
    """Dimensions merged, split, added or exchanged."""
    kind, dims = draft.choice(ALL), draft.dims(high_rank=4)
    merged = draft.size(0, len(dims))
    head, tail = dims[:merged], dims[merged:]
    options: tuple[Dims, ...] = (
        (int(np.prod(dims, dtype=int)),),
        (*head, int(np.prod(tail, dtype=int))),
        (1, *dims),
        (*dims, 1),
        dims[::-1],
    )
    target = options[draft.size(0, len(options) - 1)]
    draft.op(opcode, draft.operand(kind, dims), shape=array(kind, *target))


@generates("reverse")
def reverse(draft: Draft, opcode: str) -> None:
    """Any set of dimensions."""
    dims = draft.dims()
    chosen = draft.rng.permutation(len(dims))[: draft.size(0, len(dims))]
    draft.op(
        opcode,
        draft.operand(draft.choice(ALL), dims),
        dimensions=tuple(sorted(int(d) for d in chosen)),
    )


@generates("slice")
def static_slice(draft: Draft, opcode: str) -> None:
    """Any start, limit and stride."""
    dims = draft.dims()
    starts = [draft.size(0, size) for size in dims]
    parts = [SliceDim(start, draft.size(start, size), draft.size(1, 3)) for start, size in zip(starts, dims)]
    draft.op(opcode, draft.operand(draft.choice(ALL), dims), slice=tuple(parts))


@generates("transpose")
def transpose(draft: Draft, opcode: str) -> None:
    """Any order of dimensions, of values in any layout."""
    kind, dims = draft.choice(ALL), draft.dims(high_rank=4)
    order = tuple(int(d) for d in draft.rng.permutation(len(dims)))
    x = draft.argument(kind, values(draft.rng, kind, dims), some_layout(draft, len(dims)))
    draft.op(opcode, x, dimensions=order)


@generates("iota")
def iota(draft: Draft, opcode: str) -> None:
    """Along any dimension."""
    kind = draft.choice([t for t in ALL if t != "pred"])
    dims = draft.dims(low_rank=1, high=40)
    draft.op(opcode, shape=array(kind, *dims), iota_dimension=draft.size(0, len(dims) - 1))


@generates("constant")
def constant(draft: Draft, opcode: str) -> None:
    """Values of every element type."""
    kind = draft.choice(ALL)
    draft.builder.constant(values(draft.rng, kind, draft.dims()), kind)


@generates("tuple")
def make_tuple(draft: Draft, opcode: str) -> None:
    """A tuple of one to three arrays."""
    draft.op(opcode, *(draft.operand(draft.choice(ALL), draft.dims()) for _ in range(draft.size(1, 3))))


@generates("get-tuple-element")
def get_tuple_element(draft: Draft, opcode: str) -> None:
    """One of the elements of a tuple."""
    parts = [draft.operand(draft.choice(ALL), draft.dims()) for _ in range(draft.size(1, 3))]
    draft.op(opcode, draft.op("tuple", *parts), index=draft.size(0, len(parts) - 1))


@generates("parameter")
def parameter(draft: Draft, opcode: str) -> None:
    """A value in any layout, returned as it is."""
    kind, dims = draft.choice(ALL), draft.dims()
    draft.argument(kind, values(draft.rng, kind, dims), some_layout(draft, len(dims)))


@generates("get-dimension-size", "set-dimension-size")
def dimension_size(draft: Draft, opcode: str) -> None:
    """The sum, or the size, of an array that is cut at run time."""
    from hlotool.lab.conformance.generators.cases import binary

    size = draft.size(1, 6)
    x = draft.operand(draft.choice(INTEGERS[2:]), (size,))
    count = draft.argument("s32", np.array(draft.size(0, size), np.int32))
    cut = draft.op("set-dimension-size", x, count, dimensions=(0,))
    if opcode == "get-dimension-size":
        draft.op(opcode, cut, dimensions=(0,))
        return
    kind = cut.shape.element_type  # type: ignore[union-attr]
    zero = draft.builder.constant(0, kind)
    draft.op("reduce", cut, zero, dimensions=(0,), to_apply=binary("add", kind.value))
