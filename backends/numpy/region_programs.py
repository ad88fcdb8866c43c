"""Programs on global arrays with manual regions: one program, but for what lies inside the regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hlotool.backends.base import Probe, Value
from hlotool.backends.numpy.arguments import check_arguments
from hlotool.backends.numpy.executables import DevicesExecutable, execute
from hlotool.backends.numpy.lockstep import Device, World
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.registry import Calling, Kernel
from hlotool.backends.numpy.run import Run
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.manual_regions import REGION_TARGET, NotSeparable, RegionFinder
from hlotool.ir.module import Computation, Instruction, Module

if TYPE_CHECKING:
    from hlotool.backends.numpy.policy import KernelPolicy


class LogicalExecutable:
    """Runs the regions on all partitions and the rest once.

    Where the regions cannot be cut out, and under a probe, which must see the program as it is, every device
    runs the whole program on the same arguments.
    """

    def __init__(self, module: Module, policy: KernelPolicy | None = None) -> None:
        self.module = module
        self._policy = policy
        self._grid = DeviceGrid(1, module.num_partitions)
        self._plan = self._separated()

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. The probe sees the first device."""
        if self._plan is None or probe is not None:
            count = len(self._grid)
            return self._everywhere.run_devices([arguments] * count, [probe] + [None] * (count - 1))[0]
        return execute(self._plan, check_arguments(self.module, arguments), Run())

    def _separated(self) -> Plan | None:
        try:
            return _LogicalLowering(self.module, self._grid, self._policy).plan(self.module.entry)
        except NotSeparable:
            self._everywhere  # noqa: B018 - what cannot be executed must show now
            return None

    @cached_property
    def _everywhere(self) -> DevicesExecutable:
        plan = Lowering(self.module, self._grid, self._policy).plan(self.module.entry)
        return DevicesExecutable(self.module, plan, self._grid)


class _LogicalLowering(Lowering):
    """Compiles the computations around the regions, and the regions for all devices."""

    def __init__(self, module: Module, grid: DeviceGrid, policy: KernelPolicy | None) -> None:
        super().__init__(module, policy=policy)
        self._finder = RegionFinder()
        self._inside = Lowering(module, grid, policy)

    def build(self, computation: Computation, kernel: Callable[[Instruction], Kernel]) -> Plan:
        return super().build(self._finder.outlined(computation), kernel)

    def kernel(self, instruction: Instruction) -> Kernel:
        if instruction.custom_call_target != REGION_TARGET:
            return super().kernel(instruction)
        return _on_all_devices(self._inside.plan(next(instruction.called)), self._inside.grid)


def _on_all_devices(plan: Plan, grid: DeviceGrid) -> Kernel:
    """A kernel that runs `plan` on every device; all return the same global values."""

    def kernel(values: list[Any], run: Run) -> Any:
        world = World(grid)

        def body(number: int) -> Any:
            return execute(plan, list(values), Run(device=Device(world, number)))

        return world.run(body)[0]

    return Calling(kernel)
