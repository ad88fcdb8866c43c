"""Transfers between the program and the host, or other devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.module import Instruction


@lowers("infeed", "recv", "recv-done")
def receive(instruction: Instruction, lowering: Lowering) -> Kernel:
    """Not executable: the data came from outside the program and is not in the dump.

    XLA: operation_semantics.md#infeed, #recv.
    """
    origin = "another device"
    if instruction.opcode == "infeed" or _is_host_transfer(instruction):
        origin = "the host"
    raise lowering.unsupported(instruction, f"takes data from {origin}, which no dump holds")


@lowers("outfeed")
def outfeed(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token; the data leaves the program, and nothing in it depends on them. XLA: #outfeed."""
    return lambda data, token: TOKEN


@lowers("send")
def send(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The data, a context and a token; what a host transfer sends leaves the program. XLA: #send."""
    if not _is_host_transfer(instruction):
        raise lowering.unsupported(instruction, "send to another device; one device is executed")
    context = np.zeros((), np.uint32)
    return lambda data, token: (data, context, TOKEN)


@lowers("send-done")
def send_done(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A token. XLA: operation_semantics.md#send."""
    return _token


def _is_host_transfer(instruction: Instruction) -> bool:
    return instruction.attributes.get("is_host_transfer") is True


def _token(_: Any) -> Any:
    return TOKEN
