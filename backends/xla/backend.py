"""Executes HLO with real XLA: programs as the frontend made them, and programs that are optimised already."""

from __future__ import annotations

from functools import cached_property

from hlotool.backends.xla.executable import (
    Loaded,
    XlaDevicesExecutable,
    XlaExecutable,
    XlaPartitionedExecutable,
)
from hlotool.backends.xla.host import host_module
from hlotool.backends.xla.options import XlaOptions
from hlotool.backends.xla.outside import refuse_the_outside
from hlotool.backends.xla.partitions import for_grid, manual_module
from hlotool.backends.xla.process import XlaProcess, key_for, shared_process
from hlotool.backends.xla.protocol import Program, Route, Setup
from hlotool.backends.xla.routes import route_for
from hlotool.backends.xla.signature import array_shapes, flat_signature
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.printer import PrintOptions, print_module

#: Where instructions come from makes no difference, and older versions cannot read how it is written now.
_TEXT = PrintOptions(metadata=False)


class XlaBackend:
    """XLA of the installed jaxlib, or of the one that another interpreter has."""

    def __init__(self, options: XlaOptions | None = None, name: str = "xla") -> None:
        self.name = name
        self.options = options or XlaOptions()

    @cached_property
    def setup(self) -> Setup:
        """What it computes with.

        Raises:
            BackendUnavailable: jaxlib or the device is missing.
        """
        return self._process(1).setup()

    @property
    def version(self) -> str:
        """`jaxlib X.Y.Z`, and the options that tell variants apart."""
        _, _, options = self.name.partition(":")
        return f"jaxlib {self.setup.jaxlib}" + (f" ({options})" if options else "")

    @property
    def device(self) -> str:
        """What it computes on."""
        return self.setup.device

    def compile(self, module: Module) -> XlaExecutable | XlaPartitionedExecutable:
        """Compile for one device; a program on global arrays for as many partitions as its header says.

        Raises:
            Unsupported: XLA refuses it, or it talks to the host.
            BackendFailed: XLA died of it.
        """
        flat = flat_signature(module)
        route = self.options.route or route_for(module)
        if route is Route.MLIR and module.num_partitions > 1 and not is_per_device(module):
            grid = DeviceGrid(1, module.num_partitions)
            loaded = self._load(for_grid(flat, grid), route, grid)
            return XlaPartitionedExecutable(module, loaded, len(grid), array_shapes(flat.entry.root.shape))
        return XlaExecutable(module, self._load(for_grid(flat, ONE_DEVICE), route, ONE_DEVICE))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> XlaDevicesExecutable:
        """Compile for all devices of `grid`, whatever its header says; raises as `compile`."""
        flat = for_grid(flat_signature(module), grid)
        route = self.options.route or route_for(module)
        if grid.partitions > 1 and route is Route.MLIR:
            flat = manual_module(flat)
        return XlaDevicesExecutable(module, self._load(flat, route, grid), len(grid))

    def _load(self, flat: Module, route: Route, grid: DeviceGrid) -> Loaded:
        refuse_the_outside(flat)
        process = self._process(len(grid))
        text = print_module(flat, _TEXT)
        program = Program(
            text=text,
            route=route,
            host="" if route is Route.MLIR else _host_text(flat, grid),
            flags=self.options.flags,
            replicas=grid.replicas,
            partitions=grid.partitions,
            shardy="xla.sdy." in text,
            platform=self.options.platform,
            released=process.take_released(),
        )
        return Loaded(program, process)

    def _process(self, devices: int) -> XlaProcess:
        options = self.options
        return shared_process(key_for(options.platform, options.python, devices, options.timeout))


def _host_text(flat: Module, grid: DeviceGrid) -> str:
    host = for_grid(host_module(flat), grid)
    return print_module(manual_module(host) if grid.partitions > 1 else host)
