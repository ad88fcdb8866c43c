"""A backend with planted noise: one instruction is wrong, or sums in another order, in some of its runs.

The instruction is the one with the frontend attribute `planted`: `race` puts another number into one place of
its result, `order` turns the terms of its sum round, which a legal execution may do.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ROOT
from hlotool.backends.numpy import NumpyBackend, NumpyExecutable
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.module import Instruction, Module

PLANTED = "planted"


class RacingBackend(NumpyBackend):
    """NumPy, but for the instruction that is marked.

    Args:
        rate: the share of runs of the instruction in which it does something else.
        seed: of the numbers that decide.
    """

    name = "racing"

    def __init__(self, rate: float, seed: int) -> None:
        self._rate = rate
        self._dice = random.Random(seed)

    @property
    def version(self) -> str:
        """`racing 1`."""
        return "racing 1"

    def compile(self, module: Module) -> NumpyExecutable:
        """See `Backend`."""
        return NumpyExecutable(module, Lowering(module, policy=self).plan(module.entry))

    def kernel(self, instruction: Instruction, kernel: Kernel) -> Kernel:
        """See `KernelPolicy`: the kernel of one instruction."""
        kind = instruction.frontend_attribute(PLANTED)
        if kind is None or not callable(kernel):
            return kernel
        other = _in_other_order(instruction, kernel) if kind == "order" else self._raced(kernel)
        return lambda *operands: (other if self._dice.random() < self._rate else kernel)(*operands)

    def _raced(self, kernel: Any) -> Kernel:
        def raced(*operands: Any) -> Any:
            result = np.array(kernel(*operands))
            place = self._dice.randrange(result.size)
            result.flat[place] = _another(result, place)
            return result

        return raced


def _another(array: Any, place: int) -> Any:
    """A number that is not the one in a place, and of the size of the largest."""
    if array.dtype == np.bool_:
        return not array.flat[place]
    if array.dtype.kind in "iu":
        return array.flat[place] ^ 1
    return array.flat[place] + np.abs(array).max() + 1


def _in_other_order(instruction: Instruction, kernel: Any) -> Kernel:
    """A sum of the same terms from the last to the first."""
    if instruction.opcode == "dot":
        axes = [instruction.integers(f"{side}_contracting_dims") for side in ("lhs", "rhs")]
        return lambda a, b: kernel(np.flip(a, axes[0]), np.flip(b, axes[1]))
    axis = instruction.integers("dimensions")
    return lambda terms, start: kernel(np.flip(terms, axis), start)


def create(options: Mapping[str, str]) -> RacingBackend:
    """Entry point of group `hlotool.backends`."""
    return RacingBackend(float(options["rate"]), int(options["seed"]))


def install(folder: Path) -> None:
    """Install the backend for this process and those that it starts."""
    info = folder / "racing-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: racing\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[hlotool.backends]\nracing = benchmarks.repeat.racing:create\n")
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
