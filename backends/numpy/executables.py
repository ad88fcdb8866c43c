"""Modules compiled to plans: for one device, or for several that are all simulated in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.base import TOKEN, Probe, ReadingProbe, Token, Value
from hlotool.backends.numpy.lockstep import Device, World
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.run import Run
from hlotool.errors import InputDataError
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TokenShape, TupleShape
from hlotool.workers.work_limit import spend

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
