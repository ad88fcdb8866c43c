"""Collectives within groups of devices.

XLA: operation_semantics.md, sections allreduce, allgather, reducescatter, alltoall, collectivebroadcast.
What `-start` returns is described at each; `-done` takes the result. Transfers happen where they start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.lanes import Lanes, lanes
from hlotool.backends.numpy.lockstep import (
    check_single_device,
    collective,
    group_of_each,
    this_device,
)
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ordering import Monoid
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, TupleShape

#: From one operand of every member, in the order of the group, to what each gets for it.
Column: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]

#: From the copies of an operand to what they are together.
_Combine: TypeAlias = Callable[[Sequence[Array]], Array]


@lowers("all-reduce", "all-reduce-start")
def all_reduce(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Every operand combined over the group by `to_apply`; the start returns the result itself.

    Sums are more accurate than any backend's, as in reduce. Where operands are of several types, `to_apply`
    only names the operation (such a form comes from XLA's combiner of all-reduces; no frontend can write it,
    and the CPU's runtime has none for bf16). XLA: operation_semantics.md#allreduce, collective_ops_utils.cc
    (MatchReductionComputation).
    """

    def column(combine: _Combine) -> Column:
        return lambda copies: [combine(copies)] * len(copies)

    return _by_operand(instruction, lowering, map(column, _reductions(instruction, lowering)))


@lowers("reduce-scatter")
def reduce_scatter(instruction: Instruction, lowering: Lowering) -> Kernel:
    """As all-reduce, and the n-th member keeps the n-th part. XLA: operation_semantics.md#reducescatter."""
    axis = _axis(instruction, lowering)

    def column(combine: _Combine) -> Column:
        return lambda copies: np.split(combine(copies), len(copies), axis)

    return _by_operand(instruction, lowering, map(column, _reductions(instruction, lowering)))


@lowers("all-gather")
def all_gather(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands of the group one after the other along `dimensions`. XLA: #allgather."""
    return _by_operand(instruction, lowering, repeat(_gather(instruction, lowering)))


@lowers("all-gather-start")
def all_gather_start(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands and the results."""
    gather = _gather(instruction, lowering)

    def exchange(members: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        results = [gather(column)[0] for column in zip(*members)]
        if len(results) == 1:
            return [(operands[0], results[0]) for operands in members]
        return [(operands, tuple(results)) for operands in members]

    return collective(instruction, lowering, exchange)


@lowers("all-reduce-done")
def all_reduce_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """What the start returned: the result itself."""
    return lambda started: started


@lowers("all-gather-done", "collective-permute-done")
def take_result(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The second element of what the start returned."""
    return lambda started: started[1]


@lowers("all-to-all")
def all_to_all(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The n-th member gets the n-th part of everybody's operand, in the order of the group.

    The parts are the operands themselves, or, with `dimensions`, equal pieces of one operand along it.
    XLA: operation_semantics.md#alltoall.
    """
    if isinstance(instruction.shape, TupleShape):
        return collective(instruction, lowering, lambda members: list(zip(*members)))
    axis = _axis(instruction, lowering)

    def trade(arrays: Sequence[Array]) -> list[Array]:
        pieces = [np.split(array, len(arrays), axis) for array in arrays]
        return [np.concatenate(received, axis) for received in zip(*pieces)]

    return _by_operand(instruction, lowering, repeat(trade))


@lowers("collective-broadcast")
def collective_broadcast(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands of the group's first member; zeros on a device in no group. XLA: #collectivebroadcast."""
    if instruction.flag("has_dynamic_root"):
        raise lowering.unsupported(instruction, "a root of collective-broadcast that the program computes")
    groups = group_of_each(instruction, lowering)
    if len(lowering.grid) == 1:
        return lambda *operands: _as_result(instruction, operands)

    def kernel(values: list[Any], run: Run) -> Any:
        device = this_device(run)
        group = groups.get(device.number)
        if group is None:
            return _as_result(instruction, [np.zeros_like(value) for value in values])
        result = _as_result(instruction, values)
        return device.meet(instruction, group, result, lambda members: [members[0]] * len(members))

    return Calling(kernel)


@lowers("partition-id", "replica-id")
def device_number(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The number of this device among its partitions or replicas. XLA: #partitionid, #replicaid."""
    check_single_device(instruction, lowering)
    if len(lowering.grid) == 1:
        zero = np.zeros((), np.uint32)
        return lambda: zero
    name = "partition" if instruction.opcode == "partition-id" else "replica"
    return Calling(lambda _, run: np.array(getattr(this_device(run), name), np.uint32))


def _by_operand(instruction: Instruction, lowering: Lowering, columns: Iterable[Column]) -> Kernel:
    """A collective that treats its operands apart, each by its own function; tokens are handed on."""
    arrays = [operand for operand in instruction.operands if isinstance(operand.shape, ArrayShape)]
    own = [column for column, _ in zip(columns, arrays)]
    own += [list] * (len(instruction.operands) - len(arrays))

    def exchange(members: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        done = [column(operands) for column, operands in zip(own, zip(*members))]
        return [_as_result(instruction, row) for row in zip(*done)]

    return collective(instruction, lowering, exchange)


def _as_result(instruction: Instruction, values: Sequence[Any]) -> Any:
    return tuple(values) if isinstance(instruction.shape, TupleShape) else values[0]


def _axis(instruction: Instruction, lowering: Lowering) -> int:
    dimensions = instruction.integers("dimensions")
    if len(dimensions) != 1:
        raise lowering.unsupported(instruction, f"{instruction.opcode} along dimensions {dimensions}")
    axis: int = dimensions[0]
    return axis


def _gather(instruction: Instruction, lowering: Lowering) -> Column:
    axis = _axis(instruction, lowering)
    return lambda parts: [np.concatenate(parts, axis) if len(parts) > 1 else parts[0]] * len(parts)


def _reductions(instruction: Instruction, lowering: Lowering) -> Iterator[_Combine]:
    """`to_apply` over copies of each operand."""
    computation = instruction.computation("to_apply")
    if len(computation.parameters) != 2:
        raise lowering.unsupported(instruction, f"to_apply of {len(computation.parameters)} parameters")
    apply = lanes(computation, lowering)
    named = apply.monoids[0] if apply.monoids is not None else None
    for operand in instruction.operands:
        if not isinstance(operand.shape, ArrayShape):
            continue
        kind = operand.element_type
        if named is None and kind is not computation.root.element_type:
            raise lowering.unsupported(instruction, f"to_apply returns {computation.root.shape}")
        yield _over_copies(apply, replace(named, element_type=kind) if named is not None else None)


def _over_copies(apply: Lanes, monoid: Monoid | None) -> _Combine:
    def combine(copies: Sequence[Array]) -> Array:
        if len(copies) == 1:
            return copies[0]
        return _accumulated(monoid, copies) if monoid is not None else _folded(apply, copies)

    return combine


def _accumulated(monoid: Monoid, copies: Sequence[Array]) -> Array:
    """In the accumulation type, rounded once."""
    domain = monoid.domain(*copies)
    total = np.array(domain.values[0], domain.dtype)
    for value in domain.values[1:]:
        monoid.ufunc(total, value, out=total)
    return domain.restore(total)


def _folded(apply: Lanes, copies: Sequence[Array]) -> Array:
    """acc = f(acc, copy) in the order of the group."""
    total = copies[0]
    for copy in copies[1:]:
        total = apply(total, copy)[0]
    return total


@lowers("ragged-all-to-all")
def ragged_all_to_all(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The output operand with the rows that all members send to this one.

    The offsets and sizes are of shape `[members]` or `[members, updates]`, indexed by the receiver; output
    offsets are places in the receiver's output. What the receiver expects to get is not needed.
    XLA: operation_semantics.md#raggedalltoall.
    """

    def check(begin: int, size: int, array: Array) -> None:
        if size < 0 or (size and not 0 <= begin <= len(array) - size):
            reason = f"a piece of {size} rows at {begin} of an array of {len(array)}"
            raise lowering.unsupported(instruction, reason)

    def exchange(members: Sequence[tuple[Array, ...]]) -> list[Array]:
        results = [operands[1].copy() for operands in members]
        for source, _, starts, sizes, places, _ in members:
            for receiver, result in enumerate(results):
                for start, size, place in _updates(receiver, len(members), starts, sizes, places):
                    check(start, size, source)
                    check(place, size, result)
                    result[place : place + size] = source[start : start + size]
        return results

    return collective(instruction, lowering, exchange)


def _updates(receiver: int, count: int, *columns: Array) -> Iterator[tuple[int, ...]]:
    """(start, size, place) of what goes to one member."""
    rows = (column.reshape(count, -1)[receiver].tolist() for column in columns)
    yield from zip(*rows)
