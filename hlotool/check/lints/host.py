"""Where a program leaves the device."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.module import Instruction

_CALLBACKS = ("python_cpu_callback", "python_gpu_callback", "python_tpu_callback", "host_callback", "PyFunc")
_HOST = frozenset({"infeed", "outfeed"})


@module_rule(
    "host-callback",
    Severity.NOTE,
    "a call back into Python, or a transfer to the host, in the middle of the program",
    remedy="remove it from what is timed; such a program cannot be replayed elsewhere or cached",
)
def host_callback(subject: Subject) -> Iterator[Problem]:
    """Each callback, infeed, outfeed and host transfer."""
    for instruction in subject.instructions:
        if what := leaves_device(instruction):
            yield Problem(f"{what} stops the device until the host has answered", instruction)


def leaves_device(instruction: Instruction) -> str:
    """What it is that the device waits for the host in, as `this infeed`; empty where it does not."""
    target = instruction.custom_call_target
    if any(word in target for word in _CALLBACKS):
        return f"the callback {target}"
    if instruction.opcode in _HOST:
        return f"this {instruction.opcode}"
    if instruction.opcode in ("send", "recv") and instruction.flag("is_host_transfer"):
        return f"this {instruction.opcode} to the host"
    return ""
