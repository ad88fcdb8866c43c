"""What another run does not repeat: answers of the host, random numbers, sums in any order."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.check.findings import Severity
from hlotool.check.rules import Problem, module_rule
from hlotool.check.subject import Subject
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape


@module_rule(
    "stateful-rng",
    Severity.WARNING,
    "random numbers from the device's own generator: seeds of the frontend have no effect",
    remedy="draw from a key that is an argument: jax.random, tf.random.stateless_*, tf.random.Generator",
)
def stateful_rng(subject: Subject) -> Iterator[Problem]:
    """`rng` and `rng-get-and-update-state`."""
    for instruction in subject.instructions:
        if instruction.opcode in ("rng", "rng-get-and-update-state"):
            yield Problem(
                "these random numbers differ from run to run and cannot be compared or replayed", instruction
            )


@module_rule(
    "nondeterministic-scatter",
    Severity.NOTE,
    "sums of floats whose order a GPU does not fix: results differ in the last bits from run to run",
    remedy="unique_indices=True where it holds, --xla_gpu_exclude_nondeterministic_ops to find them all",
)
def nondeterministic_scatter(subject: Subject) -> Iterator[Problem]:
    """Float scatters that combine updates, without unique indices."""
    for instruction in subject.instructions:
        if instruction.opcode == "scatter" and _combines_floats(instruction):
            yield Problem("updates of one element are added in any order", instruction)


def _combines_floats(scatter: Instruction) -> bool:
    if scatter.flag("unique_indices"):
        return False
    combines = any(i.opcode in ("add", "multiply") for c in scatter.called for i in c.instructions)
    shape = scatter.operands[0].shape
    return combines and isinstance(shape, ArrayShape) and shape.element_type.is_floating


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
