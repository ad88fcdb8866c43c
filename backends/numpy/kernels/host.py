"""Transfers between the program and the host, and the refusal of those that cannot be executed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.devices import this_device
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel, lowers
from hlotool.backends.numpy.run import Run
from hlotool.errors import Unsupported
from hlotool.ir.devices import place_pairs
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, TupleShape


@lowers("infeed")
def infeed(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Not executable. XLA: operation_semantics.md#infeed."""
    raise _from_outside(instruction, lowering, "the host")


@lowers("recv")
def recv(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Zeros for now, a handle and a token; executable where another device sends. XLA: #recv."""
    _check_device_transfer(instruction, lowering)
    return start_receipt(instruction, lowering)


@lowers("recv-done")
def recv_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The data and a token; executable where another device sends. XLA: #recv."""
    _check_device_transfer(instruction, lowering)
    return finish_receipt(instruction, lowering)


def _check_device_transfer(instruction: Instruction, lowering: Lowering) -> None:
    if instruction.flag("is_host_transfer"):
        raise _from_outside(instruction, lowering, "the host")
    if len(lowering.grid) == 1:
        raise _from_outside(instruction, lowering, "another device")


def _from_outside(instruction: Instruction, lowering: Lowering, origin: str) -> Unsupported:
    return lowering.unsupported(instruction, f"takes data from {origin}, which no dump holds")


@lowers("outfeed")
def outfeed(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token; the data leaves the program, and nothing in it depends on them. XLA: #outfeed."""
    return lambda data, token: TOKEN


@lowers("send")
def send(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The data, a context and a token; what goes to the host leaves the program. XLA: #send."""
    if not instruction.flag("is_host_transfer"):
        if len(lowering.grid) == 1:
            raise lowering.unsupported(instruction, "send to another device; one device is executed")
        return dispatch(instruction, lowering)
    context = np.zeros((), np.uint32)
    return lambda data, token: (data, context, TOKEN)


@lowers("send-done")
def send_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token. XLA: operation_semantics.md#send."""
    return _token


def _token(_: Any) -> Any:
    return TOKEN


# Send and receive between devices, along the pairs in the frontend attributes.
#
# `recv` starts a receipt and returns a handle in the place of its context; `recv-done` waits for the data.
# The n-th `send` on a channel from one device to another meets the n-th `recv`.
#
# XLA: operation_semantics.md#send, #recv; source_target_pairs.h.

_PAIRS = "_xla_send_recv_source_target_pairs"


def dispatch(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The kernel of `send`: the data, a context and a token."""
    channel = instruction.integer("channel_id")
    targets: dict[int, list[int]] = {}
    for source, target in _pairs(instruction, lowering):
        targets.setdefault(source, []).append(target)
    context = np.zeros((), np.uint32)

    def kernel(values: list[Any], run: Run) -> Any:
        device = this_device(run)
        for target in targets.get(device.number, ()):
            device.send(channel, target, values[0])
        return values[0], context, TOKEN

    return Calling(kernel)


def start_receipt(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The kernel of `recv`: zeros, a handle and a token."""
    channel = instruction.integer("channel_id")
    senders = {target: source for source, target in _pairs(instruction, lowering)}
    shape = _data_shape(instruction, lowering)
    zeros = np.zeros(shape.dims, dtype_of(shape.element_type))
    zeros.flags.writeable = False

    def kernel(values: list[Any], run: Run) -> Any:
        device = this_device(run)
        handle = device.expect(channel, senders.get(device.number))
        return zeros, np.array(handle, np.uint32), TOKEN

    return Calling(kernel)


def finish_receipt(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The kernel of `recv-done`: the data, zeros when nobody sends any, and a token."""

    def kernel(values: list[Any], run: Run) -> Any:
        zeros, handle, _ = values[0]
        data = this_device(run).receive(int(handle), instruction)
        return zeros if data is None else data, TOKEN

    return Calling(kernel)


def _pairs(instruction: Instruction, lowering: Lowering) -> tuple[tuple[int, int], ...]:
    text = instruction.frontend_attribute(_PAIRS)
    if text is None:
        raise lowering.unsupported(instruction, f"{instruction.opcode} without {_PAIRS}")
    found = re.findall(r"\{\s*(\d+)\s*,\s*(\d+)\s*\}", text)
    return place_pairs(instruction, [(int(s), int(t)) for s, t in found], lowering.grid)


def _data_shape(instruction: Instruction, lowering: Lowering) -> ArrayShape:
    shape = instruction.shape
    data = shape.elements[0] if isinstance(shape, TupleShape) else shape
    if not isinstance(data, ArrayShape):
        raise lowering.unsupported(instruction, f"receipt of {data}")
    return data
