"""Modules compiled to plans: for one device, for several simulated in this process, or with manual regions
inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hlotool.backends.base import TOKEN, Probe, ReadingProbe, Token, Value
from hlotool.backends.numpy.lockstep import Device, World
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan, Run
from hlotool.backends.numpy.registry import Calling, Kernel
from hlotool.errors import InputDataError
from hlotool.ir.arrays import dtype_of
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.partitioning import REGION_TARGET, NotSeparable, RegionFinder
from hlotool.ir.types import ArrayShape, Shape, TokenShape, TupleShape
from hlotool.system.resources import spend

if TYPE_CHECKING:
    from hlotool.backends.numpy.executions.policy import KernelPolicy


#: A plan, or what else takes over the list of the arguments and returns the result.
Executing: TypeAlias = Callable[[list[Any], Run], Any]


def execute(plan: Executing, values: list[Any], run: Run) -> Value:
    """The result of `plan`, which takes over the list; no arithmetic warns, as none does in XLA."""
    if isinstance(plan, Plan):
        spend(plan.price)
    with np.errstate(all="ignore"):
        result: Value = plan(values, run)
    return result


def execute_devices(
    plan: Executing,
    arguments: Sequence[list[Any]],
    grid: DeviceGrid,
    probes: Sequence[Probe | None] | None = None,
    reading: ReadingProbe | None = None,
) -> list[Value]:
    """The result of `plan` on every device of `grid`, each of which takes over its list of arguments.

    `reading` sees what all of them read, besides the probe of each.
    """
    world = World(grid)

    def body(number: int) -> Value:
        run = Run(probes[number] if probes is not None else None, Device(world, number), reading)
        return execute(plan, arguments[number], run)

    return world.run(body)


class NumpyExecutable:
    """A module compiled for one device."""

    def __init__(self, module: Module, plan: Executing) -> None:
        self.module = module
        self._plan = plan

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`."""
        return execute(self._plan, check_arguments(self.module, arguments), Run(probe))


class DevicesExecutable:
    """Every device runs the same plans on its own arguments; collectives exchange values."""

    def __init__(self, module: Module, plan: Executing, grid: DeviceGrid) -> None:
        self.module = module
        self.grid = grid
        self._plan = plan

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; device = replica * partitions + partition.

        Args:
            arguments: per device, one value per entry parameter; they are not modified.
            probes: one per device, called in that device's thread.

        Returns:
            the result of each device.

        Raises:
            InputDataError: arguments for another number of devices, or one that does not fit its parameter.
            BackendDeadlock: devices wait for each other for ever.
            Unsupported: data-dependent limits of the backend.
            BackendFailed: the execution died on some device.
        """
        count = len(self.grid)
        if len(arguments) != count:
            raise InputDataError(
                f"{self.module.name} runs on {count} devices, got {len(arguments)} arguments"
            )
        values = [check_arguments(self.module, own) for own in arguments]
        return execute_devices(self._plan, values, self.grid, probes)

    def run_on(self, device: Device, arguments: Sequence[Value]) -> Value:
        """Execute once on one device of a world, in its thread; the others of its groups have to come, too.

        Raises:
            InputDataError, BackendDeadlock, Unsupported: as `run_devices`.
        """
        return execute(self._plan, check_arguments(self.module, arguments), Run(device=device))


# Arguments of a run, checked against the entry's parameters.


def check_arguments(module: Module, arguments: Sequence[Value]) -> list[Any]:
    """The arguments as read-only arrays of exactly the declared types.

    Raises:
        InputDataError: wrong count, dtype or dimensions.
    """
    parameters = module.entry.parameters
    if len(arguments) != len(parameters):
        raise InputDataError(f"{module.name} takes {len(parameters)} arguments, got {len(arguments)}")
    return [_check(p.shape, a, p.name) for p, a in zip(parameters, arguments)]


def _check(shape: Shape, value: Any, name: str) -> Any:
    if isinstance(shape, TupleShape):
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.elements):
            raise InputDataError(f"argument {name}: expected a tuple of {len(shape.elements)}")
        return tuple(_check(s, v, f"{name}.{i}") for i, (s, v) in enumerate(zip(shape.elements, value)))
    if isinstance(shape, TokenShape):
        return value if isinstance(value, Token) else TOKEN
    if not isinstance(shape, ArrayShape):
        raise InputDataError(f"argument {name}: a value of shape {shape} cannot be given")
    return _check_array(shape, value, name)


def _check_array(shape: ArrayShape, value: Any, name: str) -> Any:
    array = np.asarray(value)
    if array.dtype != dtype_of(shape.element_type):
        raise InputDataError(f"argument {name}: expected {shape.logical_text()}, got dtype {array.dtype}")
    if not shape.admits(array.shape):
        dims = ",".join(map(str, array.shape))
        raise InputDataError(f"argument {name}: expected {shape.logical_text()}, got dimensions [{dims}]")
    if array.ndim == 0:
        return array[()]
    view = array.view()
    view.flags.writeable = False
    return view


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
