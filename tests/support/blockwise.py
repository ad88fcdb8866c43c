"""Instructions that are evaluated together, and the comparison with one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.blocks import Blocks
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.registry import Calling
from hlotool.ir.module import Module
from support.differential import leaves, parse


def groups(text: str) -> list[list[str]]:
    """The opcodes of each group of the entry computation."""
    module = parse(text)
    return [[step.instruction.opcode for step in group.steps] for group in blocks_in(module)]


def blocks_in(module: Module) -> Iterator[Blocks]:
    plan: Plan = Lowering(module).plan(module.entry)
    for step in plan.quick.steps:
        if isinstance(step.kernel, Calling) and isinstance(step.kernel.function, Blocks):
            yield step.kernel.function


def same_bits(module: Module, arguments: list[Any]) -> list[Any]:
    """Run in groups and one by one, compare, and return the result."""
    executable = NumpyBackend().compile(module)
    before = [np.array(leaf) for leaf in leaves(tuple(arguments))]
    together = leaves(executable.run(arguments))
    one_by_one = leaves(executable.run(arguments, probe=lambda instruction, value: None))
    for a, b in zip(together, one_by_one, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
    for old, now in zip(before, leaves(tuple(arguments)), strict=True):
        assert old.tobytes() == now.tobytes(), "an argument was modified"
    return together
