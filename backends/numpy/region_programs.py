"""Programs on global arrays with manual regions: one program, but for what lies inside the regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hlotool.backends.base import Probe, Value
from hlotool.backends.numpy.executables import DevicesExecutable, check_arguments, execute
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
            return _LogicalLowering(self.module, self._on_grid(), self._policy).plan(self.module.entry)
        except NotSeparable:
            self._everywhere  # noqa: B018 - what cannot be executed must show now
            return None

    @cached_property
    def _everywhere(self) -> DevicesExecutable:
        return DevicesExecutable(self.module, self._on_grid().plan(self.module.entry), self._grid)

    def _on_grid(self) -> Lowering:
        return Lowering(self.module, self._grid, self._policy)


class AroundRegions(Lowering):
    """Mixed into a lowering: it compiles the computations around the regions, `inside` the regions.

    Attributes:
        inside: the lowering for all devices.
    """

    inside: Lowering

    @cached_property
    def _finder(self) -> RegionFinder:
        return RegionFinder()

    def build(self, computation: Computation, kernel: Callable[[Instruction], Kernel]) -> Plan:
        """See `Lowering`.

        Raises:
            NotSeparable: the regions cannot be cut out.
        """
        return super().build(self._finder.outlined(computation), kernel)

    def kernel(self, instruction: Instruction) -> Kernel:
        """See `Lowering`."""
        if instruction.custom_call_target != REGION_TARGET:
            return super().kernel(instruction)
        return _on_all_devices(self.inside.plan(next(instruction.called)), self.inside.grid)


class _LogicalLowering(AroundRegions):
    def __init__(self, module: Module, inside: Lowering, policy: KernelPolicy | None) -> None:
        super().__init__(module, policy=policy)
        self.inside = inside


def _on_all_devices(plan: Plan, grid: DeviceGrid) -> Kernel:
    """A kernel that runs `plan` on every device; all return the same global values."""

    def kernel(values: list[Any], run: Run) -> Any:
        world = World(grid)

        def body(number: int) -> Any:
            return execute(plan, list(values), Run(device=Device(world, number)))

        return world.run(body)[0]

    return Calling(kernel)
