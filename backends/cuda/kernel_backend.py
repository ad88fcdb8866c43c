"""What all backends of generated kernels do with modules: fusions formed as XLA does for GPUs, kernels
made, plans run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Final, Literal

import numpy as np

from hlotool.backends.base import Probe, Value
from hlotool.backends.cuda.codegen.expansion import Precision
from hlotool.backends.cuda.machine import KernelLowering, Loading, Machine
from hlotool.backends.numpy.executables import DevicesExecutable, check_arguments
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.backends.registry import evaluate_constant
from hlotool.facts.recognition import ANNOTATIONS
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.edit import editing
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Module
from hlotool.ir.partitioning import ENTERS_REGION, LEAVES_REGION, is_one_program_with_regions
from hlotool.rewrite.passes.algebra.simplify import Simplify
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.calls import Inline
from hlotool.rewrite.passes.cleanup import Cse, Dce, Fold, SimplifyTuples
from hlotool.rewrite.passes.fuse import Fuse
from hlotool.system.user_input import size_text

#: Instructions of one fusion. A kernel of many takes no more registers than one of few, since a value is kept
#: no longer than it is needed; random bits alone are 150 instructions each.
LARGEST = 400

#: In this order: what is computed along rows takes loops with it, and what is left of these joins; but where
#: there are fusions already, loops that XLA has left apart stay so.
_KINDS: Final[tuple[Literal["all", "rows", "joint"], ...]] = ("all", "rows", "joint")


def fused(module: Module) -> Module:
    """A copy in which operations are fused, reductions with the rest of their rows.

    No value is computed otherwise, but for the order of sums: that follows from how what is reduced lies in
    memory, and a reduction that takes in a transposition reads what it transposes.
    """
    fused = clone_module(module).module
    was_fused = any(i.opcode == "fusion" for c in fused.computations for i in c.instructions)
    Inline().run(fused, Context("inline"))
    _drop_annotations(fused)
    for tidy in (SimplifyTuples(), Simplify(), Fold(max_elements=1), Cse(), Dce()):
        tidy.run(fused, Context(tidy.name, evaluate=evaluate_constant))
    for kind in _KINDS[:2] if was_fused else _KINDS:
        Fuse(kind=kind, max_instructions=LARGEST).run(fused, Context("fuse"))
    return fused


def _drop_annotations(module: Module) -> None:
    """Custom calls that only say something about their operand go, but where other calls ask for that."""
    everything = [i for computation in module.computations for i in computation.instructions]
    if any(i.attributes.get("custom_call_target") in ENTERS_REGION | LEAVES_REGION for i in everything):
        return
    for computation in module.computations:
        with editing(computation) as edit:
            for instruction in edit:
                is_annotation = instruction.attributes.get("custom_call_target") in ANNOTATIONS
                operand = instruction.operands[0] if is_annotation and instruction.operands else None
                if operand is not None and operand.shape == instruction.shape:
                    edit.replace_uses(instruction, operand)
                    if not edit.successors(instruction):
                        edit.remove(instruction)


class _Kernels:
    """A module as plans of kernel launches.

    Args:
        module: what each device executes.
        machine: where it runs, each device in a thread of its own.
        fuses: operations are fused first.
        grid: the devices.

    Attributes:
        module: what is executed.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool, grid: DeviceGrid = ONE_DEVICE) -> None:
        self.module = module
        self._machine = machine
        self._grid = grid
        self._loading = machine.loading()
        self._lowering, self._plan = _compiled(fused(module) if fuses else module, self._loading, False, grid)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the host executes instead of a kernel, as `host fallbacks: sort x2, 12 MiB moved`; or nothing.

        Each counts once, also in loops. The bytes are those of the last run, or where memory is shared, those
        that they read and write when each runs once.
        """
        if not self._lowering.fallbacks:
            return ()
        counts = ", ".join(f"{opcode} x{count}" for opcode, count in sorted(self._lowering.fallbacks.items()))
        moved = self._lowering.fallback_bytes if self._loading.moved is None else self._loading.moved
        return (f"host fallbacks: {counts}, {size_text(moved)} moved",)

    @cached_property
    def _probed(self) -> tuple[Loading, Plan]:
        """The same where only what the program fuses is fused: a probe sees every instruction."""
        loading = self._machine.loading()
        return loading, _compiled(self.module, loading, True, self._grid)[1]


def _compiled(
    module: Module, loading: Loading, is_probed: bool, grid: DeviceGrid
) -> tuple[KernelLowering, Plan]:
    """The plan of a module's entry, with all kernels that it launches loaded."""
    lowering = KernelLowering(module, loading, is_probed, grid)
    plan = lowering.plan(module.entry)
    loading.build(lowering.kernels)
    return lowering, plan


class KernelExecutable(_Kernels):
    """A module for one device.

    Attributes:
        kernels: that the text of the program launches, one for each place.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool) -> None:
        super().__init__(module, machine, fuses)
        self.kernels = tuple(self._lowering.kernels)

    @property
    def launches(self) -> int:
        """Number of kernels that the text of the program launches."""
        return len(self.kernels)

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. Under a probe, only what the program fuses is fused."""
        values = check_arguments(self.module, arguments)
        loading, plan = (self._loading, self._plan) if probe is None else self._probed
        loading.begin()
        with np.errstate(all="ignore"):
            return loading.run(plan, values, Run(probe))


class KernelDevices(_Kernels):
    """A module for all devices of a grid."""

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; see `DevicesExecutable`. Under probes, nothing is fused first."""
        loading, plan = (self._loading, self._plan) if probes is None else self._probed
        self._loading.begin()
        executable = DevicesExecutable(self.module, partial(loading.run, plan), self._grid)
        return executable.run_devices(arguments, probes)


class KernelRegions(KernelDevices):
    """A program on global arrays with manual regions: all partitions execute it on the same arguments.

    Args:
        module: the program, not partitioned yet.
        machine: where.
        fuses: operations are fused first.
    """

    def __init__(self, module: Module, machine: Machine, fuses: bool) -> None:
        super().__init__(module, machine, fuses, DeviceGrid(1, module.num_partitions))

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. The probe sees the first partition."""
        count = len(self._grid)
        probes = None if probe is None else [probe, *[None] * (count - 1)]
        return self.run_devices([arguments] * count, probes)[0]


class KernelBackend(ABC):
    """Compiles modules to kernels; subclasses say where these run.

    Args:
        name: as on the command line.
        fuses: operations are fused first.
        precision: of narrow floats inside of fusions.
        calls_libraries: large products are left to a library, where there is one.
    """

    def __init__(self, name: str, fuses: bool, precision: Precision, calls_libraries: bool) -> None:
        self.name = name
        self.precision = precision
        self._fuses = fuses
        self._calls_libraries = calls_libraries

    @abstractmethod
    def loading(self) -> Loading:
        """The part of the machine that belongs to one module; see `Machine`."""

    def compile(self, module: Module) -> KernelExecutable | KernelRegions:
        """Generate and compile all kernels of `module`.

        A program on global arrays that is not partitioned yet is executed as one, whatever `num_partitions`
        says, but for manual regions: all partitions execute a program that has them.

        Raises:
            Unsupported: neither a kernel nor the numpy reference can execute an instruction.
            BackendUnavailable: the compiler or the device does not go with the other.
            BackendFailed: the compiler failed.
        """
        if is_one_program_with_regions(module):
            return KernelRegions(module, self, self._fuses)
        return self._executable(module)

    def _executable(self, module: Module) -> KernelExecutable:
        return KernelExecutable(module, self, self._fuses)

    def compile_devices(self, module: Module, grid: DeviceGrid) -> KernelDevices:
        """Compile for all devices of `grid`, whatever number the module's header says; one machine runs all.

        Raises:
            Unsupported: neither a kernel nor the numpy reference can execute an instruction.
            VerificationError: a collective whose groups do not fit the devices.
            BackendUnavailable: the compiler or the device does not go with the other.
            BackendFailed: the compiler failed.
        """
        return KernelDevices(module, self, self._fuses, grid)
