"""A module on generated kernels, on whatever machine: fusions formed, kernels made, plans run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hlotool.amounts import size_text
from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda.fusing import fused
from hlotool.backends.cuda.lowering import KernelLowering
from hlotool.backends.cuda.machine import Loading, Machine
from hlotool.backends.numpy.arguments import check_arguments
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.run import Run
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Module


class KernelExecutable:
    """A module as plans of kernel launches.

    Args:
        module: what to execute.
        machine: where.
        fuses: operations are fused first.

    Attributes:
        module: what it executes.
        kernels: that the text of the program launches, one for each place.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool) -> None:
        self.module = module
        self._machine = machine
        self._loading = machine.loading()
        self._lowering, self._plan = compiled(fused(module) if fuses else module, self._loading)
        self.kernels = tuple(self._lowering.kernels)

    @property
    def launches(self) -> int:
        """Number of kernels that the text of the program launches."""
        return len(self.kernels)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the host executes instead of a kernel; see `fallback_note`."""
        return fallback_note(self._lowering, self._loading)

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. Under a probe, only what the program fuses is fused."""
        values = check_arguments(self.module, arguments)
        loading, plan = (self._loading, self._plan) if probe is None else self._probed
        loading.begin()
        with np.errstate(all="ignore"):
            return loading.run(plan, values, Run(probe))

    @cached_property
    def _probed(self) -> tuple[Loading, Plan]:
        loading = self._machine.loading()
        return loading, compiled(self.module, loading, is_probed=True)[1]


def fallback_note(lowering: KernelLowering, loading: Loading) -> tuple[str, ...]:
    """What the host executes instead of a kernel, as `host fallbacks: sort x2, 12 MiB moved`; or nothing.

    Each counts once, also in loops. The bytes are those of the last run, or where memory is shared, those
    that they read and write when each runs once.
    """
    if not lowering.fallbacks:
        return ()
    counts = ", ".join(f"{opcode} x{count}" for opcode, count in sorted(lowering.fallbacks.items()))
    moved = lowering.fallback_bytes if loading.moved is None else loading.moved
    return (f"host fallbacks: {counts}, {size_text(moved)} moved",)


def compiled(
    module: Module, loading: Loading, is_probed: bool = False, grid: DeviceGrid = ONE_DEVICE
) -> tuple[KernelLowering, Plan]:
    """The plan of a module's entry, with all kernels that it launches loaded."""
    lowering = KernelLowering(module, loading, is_probed, grid)
    plan = lowering.plan(module.entry)
    loading.build(lowering.kernels)
    return lowering, plan
