"""The backend `cuda-emu`: fusions formed, kernels generated, compiled by g++, run on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda_emu.build import Builder, compiler
from hlotool.backends.cuda_emu.lowering import KernelLowering
from hlotool.backends.numpy.arguments import check_arguments
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.run import Run
from hlotool.errors import Unsupported
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Module
from hlotool.ir.partitioning import ENTERS_REGION
from hlotool.passes.base import Context
from hlotool.passes.fuse import Fuse


class EmulatorExecutable:
    """A module as plans of kernel launches.

    Attributes:
        module: what it executes.
        launches: number of generated kernels.
        notes: what the host executes instead of a kernel.
    """

    def __init__(self, module: Module, builder: Builder, fuses: bool) -> None:
        self.module = module
        self._builder = builder
        lowering, self._plan = _compiled(_fused(module) if fuses else module, builder)
        self.launches = len(lowering.kernels)
        self.notes = _notes(lowering)

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. Under a probe, operations are not fused."""
        values = check_arguments(self.module, arguments)
        plan = self._plan if probe is None else self._unfused
        with np.errstate(all="ignore"):
            result: Value = plan(values, Run(probe))
        return result

    @cached_property
    def _unfused(self) -> Plan:
        return _compiled(self.module, self._builder)[1]


def _check_regions(module: Module) -> None:
    borders = (i for i in module.instructions() if i.attributes.get("custom_call_target") in ENTERS_REGION)
    if module.num_partitions > 1 and (border := next(borders, None)) is not None:
        reason = "backend cuda-emu does not run manual regions of several partitions"
        raise Unsupported(reason, border.name, border.opcode, module.location(border))


def _fused(module: Module) -> Module:
    fused = clone_module(module).module
    Fuse().run(fused, Context("fuse"))
    return fused


def _compiled(module: Module, builder: Builder) -> tuple[KernelLowering, Plan]:
    lowering = KernelLowering(module)
    plan = lowering.plan(module.entry)
    lowering.build(builder)
    return lowering, plan


def _notes(lowering: KernelLowering) -> tuple[str, ...]:
    """As `host fallbacks: sort x2, 12 MB moved`; in loops each counts once."""
    if not lowering.fallbacks:
        return ()
    counts: Any = ", ".join(f"{opcode} x{count}" for opcode, count in sorted(lowering.fallbacks.items()))
    return (f"host fallbacks: {counts}, {lowering.fallback_bytes / 1e6:.3g} MB moved",)


class EmulatorBackend:
    """Runs generated kernels on the CPU.

    Args:
        name: as on the command line.
        backward: threads run in descending order.
        fuses: operations are fused first.
        flags: further options of g++.

    Raises:
        BackendUnavailable: there is no g++.
    """

    def __init__(
        self,
        name: str = "cuda-emu",
        *,
        backward: bool = False,
        fuses: bool = True,
        flags: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._fuses = fuses
        self._builder = Builder(backward, flags)

    @property
    def version(self) -> str:
        """`cuda-emu (g++ X.Y.Z)`."""
        return f"{self.name} (g++ {compiler()[1]})"

    def compile(self, module: Module) -> EmulatorExecutable:
        """Generate and compile all kernels of `module`.

        Raises:
            Unsupported: neither a kernel nor the numpy reference can execute an instruction.
            BackendFailed: g++ failed.
        """
        _check_regions(module)
        return EmulatorExecutable(module, self._builder, self._fuses)
