"""Transfers along given pairs of devices.

XLA: operation_semantics.md#collectivepermute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.devices import check_single_device, this_device
from hlotool.backends.numpy.kernels.permutes_in_place import InPlace
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.backends.numpy.run import Run
from hlotool.ir.attributes import Ints
from hlotool.ir.devices import device_pairs, place_pairs, source_target_ids
from hlotool.ir.module import Instruction
from hlotool.ir.types import TupleShape

#: From this device's operands to what it receives.
_Permute: TypeAlias = Callable[[tuple[Any, ...], Run], Any]


@lowers("collective-permute")
def collective_permute(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands of the device that sends to this one; zeros when nobody does."""
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
    """What the only device receives: from itself or from nobody."""
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
