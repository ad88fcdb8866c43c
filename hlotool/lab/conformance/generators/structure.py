"""Calls, branches, loops and collectives of one device; opcodes that move data, equal to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.ir.attributes import PaddingDim, ReplicaGroups, SliceDim
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, Layout, TupleShape
from hlotool.lab.conformance.generators.cases import ALL, INTEGERS, Draft, binary, generates, values

#: What graphs are made of: exact on integers, so that every difference counts.
BINARY = sorted(opcodes_with(Trait.ASSOCIATIVE) | {"shift-left", "subtract"})
UNARY = ("negate", "not")
KINDS = INTEGERS[2:6]


def graph(draft: Draft, builder: Builder, operands: list[Instruction], length: int) -> Instruction:
    """A chain of random instructions, `length` of them after all operands have been read; its last one.

    None has the same operand twice: XLA folds x - x inside of fusions and then refuses the unused parameter.
    """
    last = operands[0]
    known = [last]
    for operand in [*operands[1:], *([None] * length)]:
        others = [operand] if operand else known[:-1]
        opcode = draft.choice(BINARY if operand else (*BINARY, *UNARY) if others else UNARY)
        pair = [last] if opcode in UNARY else [last, others[draft.size(0, len(others) - 1)]]
        last = builder.op(opcode, *pair)
        known.append(last)
    return last


def computation(draft: Draft, name: str, shape: ArrayShape, count: int) -> Computation:
    """A random graph of `count` parameters of one shape, which it also returns."""
    builder = Builder(name)
    parameters = [builder.parameter(i, shape, f"p{i}") for i in range(count)]
    return builder.build(graph(draft, builder, parameters, draft.size(1, 6)))


def arrays(draft: Draft, count: int) -> list[Instruction]:
    """Parameters of one type and dimensions; XLA folds what has no elements, and then as in `graph`."""
    kind, dims = draft.choice(KINDS), draft.dims(empty=0)
    return [draft.operand(kind, dims) for _ in range(count)]


def shape_of(instruction: Instruction) -> ArrayShape:
    """The shape of an array."""
    assert isinstance(instruction.shape, ArrayShape)
    return instruction.shape


@generates("call", "fusion")
def call(draft: Draft, opcode: str) -> None:
    """A random graph of instructions, behind a call or in a fusion."""
    operands = arrays(draft, draft.size(1, 3))
    shape = shape_of(operands[0])
    called = computation(draft, "called", shape, len(operands))
    attributes = {"to_apply": called} if opcode == "call" else {"kind": "kLoop", "calls": called}
    draft.op(opcode, *operands, shape=shape, **attributes)


@generates("conditional")
def conditional(draft: Draft, opcode: str) -> None:
    """The pred form, and the numbered one with indices inside and beyond both ends."""
    count = draft.size(1, 4)
    operands = arrays(draft, count)
    shape = shape_of(operands[0])
    branches = tuple(computation(draft, f"branch{i}", shape, 1) for i in range(count))
    if count == 2 and draft.chance():
        index = draft.operand("pred", ())
        first, second = branches
        draft.op(
            opcode,
            index,
            *operands,
            shape=shape,
            true_computation=first,
            false_computation=second,
        )
        return
    index = draft.argument("s32", np.array(draft.size(-2, count + 2), np.int32))
    draft.op(opcode, index, *operands, shape=shape, branch_computations=branches)


@generates("while")
def loop(draft: Draft, opcode: str) -> None:
    """A random body, executed a few times."""
    (x,) = arrays(draft, 1)
    shape, counter = shape_of(x), array("s32")
    state = TupleShape((counter, shape))
    body = Builder("body")
    carried = body.parameter(0, state)
    count, value = (body.op("get-tuple-element", carried, index=i) for i in range(2))
    next_value = graph(draft, body, [value], draft.size(1, 4))
    body.op("tuple", body.op("add", count, body.constant(1, "s32")), next_value)
    condition = Builder("condition")
    tested = condition.op("get-tuple-element", condition.parameter(0, state), index=0)
    condition.op("compare", tested, condition.constant(draft.size(0, 5), "s32"), direction="LT")
    zero = draft.builder.constant(0, "s32")
    start = draft.op("tuple", zero, x)
    draft.op(opcode, start, shape=state, condition=condition.build(), body=body.build())


@generates("add-dependency", "after-all")
def ordered(draft: Draft, opcode: str) -> None:
    """A value that waits for a token."""
    x = draft.operand(draft.choice(ALL), draft.dims())
    draft.op("add-dependency", x, draft.op("after-all"))


ONE = ReplicaGroups(groups=((0,),))


@generates("all-reduce", "reduce-scatter")
def reduced(draft: Draft, opcode: str) -> None:
    """A collective that reduces, on one device."""
    kind, dims = draft.choice(("s32", "u8", "f32")), draft.dims(low_rank=1, empty=0)
    x = draft.operand(kind, dims)
    attributes: dict[str, Any] = {"dimensions": (0,)} if opcode == "reduce-scatter" else {}
    draft.op(opcode, x, shape=x.shape, replica_groups=ONE, to_apply=binary("add", kind), **attributes)


@generates("all-gather", "all-to-all")
def gathered(draft: Draft, opcode: str) -> None:
    """A collective that only moves data, on one device."""
    dims = draft.dims(low_rank=1, empty=0)
    x = draft.operand(draft.choice(("s32", "u8", "f32")), dims)
    draft.op(opcode, x, shape=x.shape, replica_groups=ONE, dimensions=(draft.size(0, len(dims) - 1),))


@generates("collective-permute")
def permuted(draft: Draft, opcode: str) -> None:
    """One device that sends to itself, or to no device."""
    x = draft.operand(draft.choice(("s32", "u8", "f32")), draft.dims())
    draft.op(opcode, x, shape=x.shape, source_target_pairs=((0, 0),) if draft.chance() else ())


@generates("partition-id", "replica-id")
def device_number(draft: Draft, opcode: str) -> None:
    """The number of the one device there is."""
    draft.op(opcode)


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
