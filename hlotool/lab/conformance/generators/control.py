"""Calls, fusions, branches, loops, and what one device makes of collectives; small graphs of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.ir.attributes import ReplicaGroups
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, TupleShape
from hlotool.lab.conformance.generators.cases import ALL, INTEGERS, Draft, binary, generates

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
