"""Transfers along given pairs of devices, whole or by slices of one buffer; send and receive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.lockstep import check_single_device, this_device
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import Ints
from hlotool.ir.devices import device_pairs, place_pairs, source_target_ids
from hlotool.ir.module import Instruction
from hlotool.ir.types import TupleShape

#: From this device's operands to what it receives.
_Permute: TypeAlias = Callable[[tuple[Any, ...], Run], Any]


@lowers("collective-permute")
def collective_permute(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands of the device that sends to this one; zeros when none does."""
    permute = _permutation(instruction, lowering)

    def kernel(values: list[Any], run: Run) -> Any:
        operands = tuple(values)
        values.clear()
        return permute(operands, run)

    return Calling(kernel)


@lowers("collective-permute-start")
def collective_permute_start(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands, what `collective-permute` returns, and contexts; in place, the buffer that is read."""
    permute = _permutation(instruction, lowering)
    in_place = "slice_sizes" in instruction.attributes
    contexts = tuple(np.zeros((), np.uint32) for _ in range(_tuple_size(instruction) - 2))

    def kernel(values: list[Any], run: Run) -> Any:
        operands = tuple(values)
        sent = operands[0] if in_place else _packed(operands)
        return (sent, permute(operands, run), *contexts)

    return Calling(kernel)


def _permutation(instruction: Instruction, lowering: Lowering) -> _Permute:
    check_single_device(instruction, lowering)
    if "slice_sizes" in instruction.attributes:
        return _permutation_in_place(instruction, lowering)
    if len(lowering.grid) == 1:
        return _to_itself(instruction, lowering)
    pairs = device_pairs(instruction, lowering.grid)
    sources = {target: source for source, target in pairs}
    groups = _connected(pairs)

    def permute(operands: tuple[Any, ...], run: Run) -> Any:
        device = this_device(run)
        group = groups.get(device.number)
        if group is None:
            return _zeros(operands)
        return device.meet(instruction, group, operands, lambda sent: _received(group, sent, sources))

    return permute


def _permutation_in_place(instruction: Instruction, lowering: Lowering) -> _Permute:
    if len(lowering.grid) == 1:
        slices = InPlace(instruction, lowering, [(0, 0)] * _received_from_itself(instruction, lowering))
        return lambda operands, run: slices.exchange((0,), [operands])[0]
    pairs = place_pairs(instruction, source_target_ids(instruction), lowering.grid)
    slices = InPlace(instruction, lowering, pairs)
    groups = _connected(pairs)

    def permute(operands: tuple[Any, ...], run: Run) -> Any:
        device = this_device(run)
        group = groups.get(device.number)
        if group is None:
            return operands[1]
        return device.meet(instruction, group, operands, lambda sent: slices.exchange(group, sent))

    return permute


def _received_from_itself(instruction: Instruction, lowering: Lowering) -> int:
    """How often the only device receives from itself; an error if it receives from another one."""
    senders = [source for source, target in source_target_ids(instruction) if target == 0]
    if other := next(filter(None, senders), None):
        raise lowering.unsupported(instruction, f"device {other} sends to device 0; one is executed")
    return len(senders)


def _to_itself(instruction: Instruction, lowering: Lowering) -> _Permute:
    """What the only device receives: from itself, or zeros."""
    senders = _received_from_itself(instruction, lowering)
    return (lambda operands, run: _packed(operands)) if senders else lambda operands, run: _zeros(operands)


def _connected(pairs: Sequence[tuple[int, int]]) -> dict[int, Ints]:
    """For every device in some pair, all that pairs tie it to: only these have to wait for each other."""
    groups: dict[int, set[int]] = {}
    for pair in pairs:
        merged = {*pair}.union(*(groups.get(device, ()) for device in pair))
        groups.update(dict.fromkeys(merged, merged))
    return {device: tuple(sorted(group)) for device, group in groups.items()}


def _received(group: Ints, sent: Sequence[tuple[Any, ...]], sources: Mapping[int, int]) -> list[Any]:
    """What each member of the group receives."""
    by_sender = dict(zip(group, sent))
    return [
        _packed(by_sender[sources[device]]) if device in sources else _zeros(by_sender[device])
        for device in group
    ]


def _zeros(operands: tuple[Any, ...]) -> Any:
    return _packed(tuple(np.zeros_like(operand) for operand in operands))


def _packed(values: tuple[Any, ...]) -> Any:
    """One value as it is, several as a tuple: the result of a permute of so many operands."""
    return values[0] if len(values) == 1 else values


def _tuple_size(instruction: Instruction) -> int:
    return len(instruction.shape.elements) if isinstance(instruction.shape, TupleShape) else 0


# Transfers of slices of one buffer into slices of another one: collective-permute with `slice_sizes`.
#
# Operands: buffers to read, buffers to write (which become the result), and where the slices begin in both.
# Each side is an array or a tuple of arrays; an array has one begin, or several for as many slices. A device
# may then occur in as many pairs: the n-th pair in which it sends reads its n-th slice, the n-th in which it
# receives writes its n-th. No compiler in the public sources of XLA executes this form.
#
# XLA: hlo_verifier.cc, CheckInplaceCollectivePermute; hlo_instruction.h, CreateCollectivePermute.

Pairs: TypeAlias = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Transfer:
    """What one pair moves: the number of a slice on each side."""

    source: int
    target: int
    read: int
    written: int


class InPlace:
    """Exchanges slices between the devices of a group.

    Args:
        instruction: collective-permute or its start, with `slice_sizes`.
        lowering: for errors.
        pairs: source and target devices.
    """

    def __init__(self, instruction: Instruction, lowering: Lowering, pairs: Pairs) -> None:
        self._instruction = instruction
        self._lowering = lowering
        self._is_tuple = isinstance(instruction.operands[0].shape, TupleShape)
        self._sizes: tuple[Ints, ...] = instruction.listed("slice_sizes", tuple)
        self._transfers = list(_transfers(pairs))

    def exchange(self, group: Ints, members: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The written buffers of each member of the group, from the operands of each."""
        operands = dict(zip(group, members))
        results = {device: [b.copy() for b in self._buffers(operands[device][1])] for device in group}
        for transfer in self._transfers:
            if transfer.target in results:
                sender, receiver = operands[transfer.source], operands[transfer.target]
                self._move(transfer, sender, receiver, results[transfer.target])
        return [self._packed(results[device]) for device in group]

    def _move(
        self, transfer: _Transfer, sender: Sequence[Any], receiver: Sequence[Any], results: list[Array]
    ) -> None:
        for number, (buffer, result) in enumerate(zip(self._buffers(sender[0]), results)):
            begins = _begins(self._buffers(sender[2])[number]), _begins(self._buffers(receiver[3])[number])
            first = number * (len(self._sizes) // len(results))
            read = self._region(buffer, begins[0][transfer.read], self._sizes[first + transfer.read])
            written = self._region(result, begins[1][transfer.written], self._sizes[first + transfer.written])
            result[written] = buffer[read]

    def _region(self, buffer: Array, begin: Ints, sizes: Ints) -> tuple[slice, ...]:
        if any(b < 0 or b + n > bound for b, n, bound in zip(begin, sizes, buffer.shape)):
            reason = f"a slice of {list(sizes)} at {list(begin)} of a buffer of {list(buffer.shape)}"
            raise self._lowering.unsupported(self._instruction, reason)
        return tuple(slice(b, b + n) for b, n in zip(begin, sizes))

    def _buffers(self, value: Any) -> tuple[Any, ...]:
        return value if self._is_tuple else (value,)

    def _packed(self, values: list[Array]) -> Any:
        return tuple(values) if self._is_tuple else values[0]


def _transfers(pairs: Pairs) -> Iterator[_Transfer]:
    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    for source, target in pairs:
        yield _Transfer(source, target, sent[source], received[target])
        sent[source] += 1
        received[target] += 1


def _begins(value: tuple[Any, ...]) -> list[Ints]:
    """The begins of all slices of a buffer: a tuple of indices, or a tuple of such tuples."""
    rows = value if value and isinstance(value[0], tuple) else (value,)
    return [tuple(int(index) for index in row) for row in rows]
