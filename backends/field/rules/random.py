"""Random numbers without a law."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.field.drawing import drawn
from hlotool.backends.field.hashing import key
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.registry import means
from hlotool.backends.numpy.registry import Calling, Kernel
from hlotool.backends.numpy.run import Run
from hlotool.ir.module import Instruction


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
        low, high = (int(np.asarray(limit, np.uint64)) >> 32 for limit in limits)
        return drawn(instruction.shape, key("rng", trial.seed, distribution, low, high, number))

    return Calling(kernel)
