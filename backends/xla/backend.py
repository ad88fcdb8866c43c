"""Executes HLO with real XLA: programs as the frontend made them, and programs that are optimised already."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from hlotool.backends.registry import brief
from hlotool.backends.xla.executable import (
    Loaded,
    XlaDevicesExecutable,
    XlaExecutable,
    XlaPartitionedExecutable,
)
from hlotool.backends.xla.options import XlaOptions
from hlotool.backends.xla.process import (
    READS_STACK_FRAMES,
    DumpRequest,
    XlaProcess,
    dump_flags,
    key_for,
    shared_process,
)
from hlotool.backends.xla.programs import (
    flat_signature,
    host_module,
    in_shardy_alone,
    is_optimised,
    logical_module,
    manual_module,
    refuse_the_outside,
    route_for,
    unknown_field,
    without_field,
)
from hlotool.backends.xla.protocol import CompileRequest, Flag, Route, Setup
from hlotool.errors import BackendCrashed, BackendUnavailable, HlotoolError, Location, Unsupported
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import for_grid, is_per_device
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.ir.types import ArrayShape, ElementType, array_shapes

#: Where instructions come from makes no difference, and older versions cannot read how it is written now.
_TEXT = PrintOptions(metadata=False)

_REWRITTEN = "the optimised program was written as StableHLO, and XLA optimised it again"

#: The oldest version that goes with NumPy 2, as hlotool does; every later one is supported.
OLDEST = (0, 4, 26)

#: The first version that takes programs in the middle of its compiler.
LETS_PROGRAMS_IN = (0, 10, 2)


@dataclass(frozen=True, slots=True)
class _Source:
    """A program on its way to XLA.

    Attributes:
        module: with a flat signature.
        route: into the compiler.
        notes: for the user: what was done to it.
        flags: besides those of the backend.
        printing: how its text is written.
    """

    module: Module
    route: Route
    notes: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    printing: PrintOptions = _TEXT

    @property
    def results(self) -> list[ArrayShape]:
        """Shapes of what it returns."""
        return array_shapes(self.module.entry.root.shape)


_SIX_BITS = (ElementType.F6E2M3FN, ElementType.F6E3M2FN)


class XlaBackend:
    """XLA of the installed jaxlib, or of the one that another interpreter has."""

    def __init__(
        self, options: XlaOptions | None = None, name: str = "xla", dump: DumpRequest | None = None
    ) -> None:
        self.name = name
        self.options = options or XlaOptions()
        self._dump = dump

    @cached_property
    def setup(self) -> Setup:
        """What it computes with.

        Raises:
            BackendUnavailable: jaxlib or the device is missing, or jaxlib is older than OLDEST.
        """
        setup = self._process(1).setup()
        if _numbers(setup.jaxlib) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            needs = f"backend {brief(self.name)} needs jaxlib {oldest} or newer"
            raise BackendUnavailable(f"{needs}; this is {setup.jaxlib}")
        return setup

    def warm_up(self) -> None:
        """Start the process that holds XLA, without waiting for it."""
        self._process(1).start()

    @property
    def version(self) -> str:
        """`jaxlib X.Y.Z`, and the options that tell variants apart."""
        _, _, options = self.name.partition(":")
        return f"jaxlib {self.setup.jaxlib}" + (f" ({options})" if options else "")

    @property
    def version_number(self) -> tuple[int, ...]:
        """The version of jaxlib as numbers that can be compared, such as (0, 10, 2)."""
        return _numbers(self.setup.jaxlib)

    @property
    def device(self) -> str:
        """The device that XLA computes on, as jaxlib names it."""
        return self.setup.device

    @property
    def target(self) -> str:
        """`tpu`, or empty: see `base.target_of`."""
        return "tpu" if self.setup.platform == "tpu" else ""

    def compile(self, module: Module) -> XlaExecutable | XlaPartitionedExecutable:
        """Compile for one device; a program on global arrays for as many partitions as its header says.

        Raises:
            Unsupported: XLA refuses it, or it talks to the host.
            BackendFailed: XLA died of it.
        """
        source = self._prepare(module)
        if module.num_partitions > 1 and not is_optimised(module) and not is_per_device(module):
            grid = DeviceGrid(1, module.num_partitions)
            loaded = self._load(source, grid)
            return XlaPartitionedExecutable(module, loaded, len(grid), source.results)
        return XlaExecutable(module, self._load(source, ONE_DEVICE))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> XlaDevicesExecutable:
        """Compile for all devices of `grid`, whatever its header says; raises as `compile`."""
        source = self._prepare(module)
        if grid.partitions > 1 and source.route is Route.MLIR:
            source = replace(source, module=manual_module(source.module))
        return XlaDevicesExecutable(module, self._load(source, grid), len(grid))

    def dumping(self, folder: Path, passes: str = ".*") -> XlaBackend:
        """This backend, which has XLA write the programs that it compiles after each pass.

        It takes programs of any stage: an optimised one is written as a frontend would and optimised again.

        Args:
            folder: gets the dump, created where it is missing; also when XLA dies of the program.
            passes: regular expression of the passes to write; the ends of a compilation always are.
        """
        return XlaBackend(replace(self.options, route=Route.MLIR), self.name, DumpRequest(folder, passes))

    def _prepare(self, module: Module) -> _Source:
        """The program as it goes to XLA.

        Raises:
            Unsupported: it has a constant of f6, of which jaxlib dies (0.10.2, 0.12.0.1).
        """
        for made in module.instructions():
            kinds = (array.element_type for array in array_shapes(made.shape))
            if made.literal is not None and any(kind in _SIX_BITS for kind in kinds):
                raise module.unsupported(made, "XLA writes no constants of f6")
        version = self.version_number
        route = self.options.route or route_for(module, self.options.platform, version >= LETS_PROGRAMS_IN)
        is_rewritten = route is Route.MLIR and is_optimised(module)
        source = _Source(
            flat_signature(logical_module(module) if is_rewritten else module),
            route,
            (_REWRITTEN,) if is_rewritten else (),
        )
        if self._dump is None:
            return source
        printing = PrintOptions(metadata=version >= READS_STACK_FRAMES)
        return replace(source, flags=tuple(dump_flags(self._dump, version)), printing=printing)

    def _load(self, source: _Source, grid: DeviceGrid) -> Loaded:
        """Compile; fields of backend configs that this version does not know are left out."""
        refuse_the_outside(source.module)
        process = self._process(len(grid))
        while True:
            program = self._program(source, grid, process.take_released())
            try:
                return Loaded(program, process, source.notes)
            except (BackendCrashed, Unsupported) as error:
                field = unknown_field(str(error))
                if field is None or f'"{field}"' not in program.text:
                    raise located(error, source.module) from None
                note = f"without the field {field} of backend configs, which this XLA does not know"
                bare = without_field(source.module, field)
                source = replace(source, module=bare, notes=(*source.notes, note))

    def _program(self, source: _Source, grid: DeviceGrid, released: tuple[int, ...]) -> CompileRequest:
        module = in_shardy_alone(for_grid(source.module, grid))
        if not source.printing.metadata:
            module = replace(module, stack_frames=None)
        text = print_module(module, source.printing)
        return CompileRequest(
            text=text,
            route=source.route,
            host="" if source.route is Route.MLIR else _host_text(source.module, grid),
            flags=(*self.options.flags, *source.flags),
            replicas=grid.replicas,
            partitions=grid.partitions,
            shardy="xla.sdy." in text,
            platform=self.options.platform,
            released=released,
        )

    def _process(self, devices: int) -> XlaProcess:
        options = self.options
        return shared_process(key_for(options.platform, options.python, devices, options.timeout))


def _numbers(version: str) -> tuple[int, ...]:
    """The first three numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def located(error: BackendCrashed | Unsupported, module: Module) -> HlotoolError:
    """The error with the file that it is about."""
    if type(error) is not Unsupported or error.location.path:
        return error
    return Unsupported(
        error.reason, error.instruction, error.opcode, Location(module.path, error.location.line)
    )


def _host_text(flat: Module, grid: DeviceGrid) -> str:
    host = for_grid(host_module(flat), grid)
    return print_module(manual_module(host) if grid.partitions > 1 else host)
