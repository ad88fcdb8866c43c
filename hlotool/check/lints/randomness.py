"""Random numbers and orders that change from run to run."""

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
