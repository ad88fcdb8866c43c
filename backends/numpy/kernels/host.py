"""Transfers between the program and the host, and the refusal of those that cannot be executed."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.point_to_point import dispatch, finish_receipt, start_receipt
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.errors import Unsupported
from hlotool.ir.module import Instruction


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
