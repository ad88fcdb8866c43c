"""Collectives with one participant.

XLA: operation_semantics.md, sections allreduce, allgather, reducescatter, alltoall, collectivepermute,
collectivebroadcast, raggedalltoall. What `-start` returns is described at each; `-done` takes the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.numpy.devices import check_alone, check_single_device
from hlotool.backends.numpy.elementwise import Function
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.backends.numpy.shapes import attribute
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import TupleShape


@lowers("all-reduce", "all-reduce-start", "all-gather", "reduce-scatter", "all-to-all")
def exchange(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands: nothing to combine with, nobody to exchange with."""
    check_alone(instruction, lowering)
    return _operands if isinstance(instruction.shape, TupleShape) else _single


@lowers("all-gather-start")
def all_gather_start(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operands and the result."""
    check_alone(instruction, lowering)
    if len(instruction.operands) == 1:
        return lambda x: (x, x)
    return lambda *operands: (operands, operands)


@lowers("all-reduce-done")
def all_reduce_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """What the start returned: the result itself."""
    return _single


@lowers("all-gather-done", "collective-permute-done")
def take_result(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The second element of what the start returned."""
    return lambda started: started[1]


@lowers("collective-permute")
def collective_permute(instruction: Instruction, lowering: Lowering) -> Kernel:
    """What device 0 receives: its own operand when it sends to itself, zeros when nobody sends to it."""
    return _permuted(instruction, lowering)


@lowers("collective-permute-start")
def collective_permute_start(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operand, the result, and contexts."""
    received = _permuted(instruction, lowering)
    contexts = tuple(np.zeros((), np.uint32) for _ in range(_tuple_size(instruction) - 2))
    return lambda x: (x, received(x), *contexts)


def _permuted(instruction: Instruction, lowering: Lowering) -> Function:
    check_single_device(instruction, lowering)
    if len(instruction.operands) != 1:
        raise lowering.unsupported(instruction, f"{instruction.opcode} into slices of a buffer")
    pairs = attribute(instruction, "source_target_pairs", tuple, lowering)
    senders = [source for source, target in pairs if target == 0]
    if senders == [0]:
        return _single
    if senders:
        raise lowering.unsupported(instruction, f"device {senders[0]} sends to device 0; one is executed")
    return np.zeros_like


def _tuple_size(instruction: Instruction) -> int:
    return len(instruction.shape.elements) if isinstance(instruction.shape, TupleShape) else 0


@lowers("collective-broadcast")
def collective_broadcast(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The operand of the group's first and only member."""
    check_alone(instruction, lowering)
    return _single


@lowers("ragged-all-to-all")
def ragged_all_to_all(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The output operand with rows of the input sent to it.

    Operands: input, output, input offsets, send sizes, output offsets, receive sizes; one number per update.
    """
    check_alone(instruction, lowering)
    return _send_rows


def _send_rows(
    source: Array, target: Array, starts: Array, sizes: Array, places: Array, _received: Array
) -> Array:
    result = target.copy()
    for start, size, place in zip(starts.tolist(), sizes.tolist(), places.tolist()):
        result[place : place + size] = source[start : start + size]
    return result


@lowers("partition-id", "replica-id")
def device_number(instruction: Instruction, lowering: Lowering) -> Kernel:
    """0: there is one device."""
    check_single_device(instruction, lowering)
    zero = np.zeros((), np.uint32)
    return lambda: zero


def _single(value: Any) -> Any:
    return value


def _operands(*values: Any) -> tuple[Any, ...]:
    return values
