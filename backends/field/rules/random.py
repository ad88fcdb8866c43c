"""Random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.field.drawing import drawn
from hlotool.backends.field.hashing import key
from hlotool.backends.field.held import is_float, residues
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import means, plain
from hlotool.backends.field.snapping import dyadic
from hlotool.backends.numpy.registry import RULES, Calling, Kernel
from hlotool.backends.numpy.run import Run
from hlotool.ir.module import Instruction
from hlotool.ir.types import Shape, TupleShape


@means("rng-bit-generator")
def random_floats(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's random bits, read as floats."""
    generate = plain(RULES["rng-bit-generator"](instruction, lowering.numbers))

    def words(shape: Shape, value: Any) -> Any:
        return dyadic(np.asarray(value).astype(np.float64)) if is_float(shape) else value

    def kernel(state: Any) -> Any:
        found = generate(state)
        if not isinstance(instruction.shape, TupleShape):
            return words(instruction.shape, found)
        return tuple(words(shape, part) for shape, part in zip(instruction.shape.elements, found))

    return kernel


@means("rng")
def rng(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Numbers keyed by the distribution, its limits and the order of execution, the same in every program.

    What they are keyed by is known to `rng` alone: a program that draws them by other instructions differs.
    """
    distribution = instruction.text("distribution")
    lowering.use_box(instruction, f"rng {distribution}")
    trial = lowering.trial

    def kernel(limits: list[Any], run: Run) -> Any:
        number = int(run.generator.integers(1 << 62))
        low, high = (int(residues(o.shape, limit)) for o, limit in zip(instruction.operands, limits))
        return drawn(instruction.shape, key("rng", trial.seed, distribution, low, high, number))

    return Calling(kernel)
