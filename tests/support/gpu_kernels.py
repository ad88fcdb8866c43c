"""The kernels of a program, without running any."""

from __future__ import annotations

from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.cuda.kernel_backend import fused
from hlotool.backends.cuda.machine import KernelLowering
from hlotool.ir.module import Module
from support.kernels import emulator


def kernels_of(module: Module) -> list[Kernel]:
    """Each once, with the operations fused as for a GPU."""
    lowering = KernelLowering(fused(module), emulator().loading())
    lowering.plan(lowering.module.entry)
    return list({kernel.name: kernel for kernel in lowering.kernels}.values())
