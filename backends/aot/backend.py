"""Compiles programs for TPUs and GPUs on any machine, and executes what comes out on NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from hlotool.backends.aot.options import TARGETS, AotOptions
from hlotool.backends.aot.protocol import (
    EXTRAS,
    LOG,
    AheadRequest,
    AheadResult,
    CompilerSetup,
    Grid,
    TargetRequest,
)
from hlotool.backends.base import DevicesBackend, DevicesExecutable, Executable, Probe, Value, notes_of
from hlotool.backends.registry import RUNS_COMPILED, brief, get_devices_backend
from hlotool.backends.xla.executable import flat_arguments, refuse_probes, value_of
from hlotool.backends.xla.process import READS_STACK_FRAMES, ProcessKey, XlaProcess, shared_process
from hlotool.backends.xla.programs import (
    flat_signature,
    in_shardy_alone,
    is_optimised,
    logical_module,
    manual_module,
    refuse_the_outside,
)
from hlotool.backends.xla.protocol import Flag
from hlotool.errors import BackendCrashed, Unsupported, UsageError
from hlotool.ir.arrays import Array
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import for_grid, is_per_device
from hlotool.ir.printer import PrintOptions, print_module
from hlotool.ir.types import ArrayShape, Shape, array_shapes, strip_layouts
from hlotool.parser.reader import parse_module
from hlotool.system.files import brief_folder
from hlotool.system.process import Log

_CHILD = "hlotool.backends.aot.child"

#: The memory space of the host in layouts, and what JAX calls it.
_HOST_MEMORY, _ON_HOST = 5, "pinned_host"


class AotBackend:
    """The compiler of a kind of TPU or GPU, then NumPy.

    Args:
        options: how it compiles.
        name: its spec.
        folder: gets the compiler's dump; None for none.
        passes: regular expression of the passes that are written there.
    """

    #: What executes the programs that it makes.
    runs: str | DevicesBackend = RUNS_COMPILED

    def __init__(
        self, options: AotOptions, name: str = "aot", folder: Path | None = None, passes: str = ""
    ) -> None:
        self.name = name
        self.options = options
        self._folder = folder
        self._passes = passes

    @cached_property
    def setup(self) -> CompilerSetup:
        """The compiler.

        Raises:
            BackendUnavailable: it is not installed, or knows no such topology.
            UsageError: no target is named.
        """
        return self._process().call(f"{_CHILD}:describe", self._target(), CompilerSetup)

    def warm_up(self) -> None:
        """Start the process that holds the compiler, without waiting for it."""
        self._process().start()

    @property
    def version(self) -> str:
        """The compiler, what it compiles for, and the options that tell variants apart."""
        told = {"python", "libtpu", "timeout", *TARGETS}
        others = [o for o in self.name.partition(":")[2].split(",") if o.partition("=")[0] not in told]
        target = self.options.target
        where = self.setup.device if target is None else target.device
        return f"{self.setup.compiler} for {where}" + (f" ({','.join(others)})" if others else "")

    @property
    def device(self) -> str:
        """The device that is compiled for, as the compiler names it."""
        return self.setup.device

    @property
    def target(self) -> str:
        """`tpu`, whose programs are rounded as text says; empty for GPUs, on which that is the hardware's."""
        return "tpu" if self._target().platform == "tpu" else ""

    def compile(self, module: Module) -> Executable:
        """Compile for one device.

        Raises:
            Unsupported: the compiler refuses it, or NumPy cannot execute what it makes of it.
            BackendFailed: the compiler died of it.
        """
        if module.num_partitions > 1 and not is_optimised(module) and not is_per_device(module):
            raise Unsupported(f"backend {self.name}: a program that is partitioned returns its parts")
        made = self._made_of(module, ONE_DEVICE)
        return _OneDevice(module, self.executor.compile(made))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesExecutable:
        """Compile for all devices of `grid`, whatever its header says; raises as `compile`."""
        made = self._made_of(module, grid, is_manual=grid.partitions > 1)
        return _Devices(module, self.executor.compile_devices(made, grid))

    @property
    def executor(self) -> DevicesBackend:
        """What executes the programs that it makes."""
        return get_devices_backend(self.runs) if isinstance(self.runs, str) else self.runs

    def made_of(self, module: Module) -> Module | None:
        """See `CompilingBackend.made_of`; raises as `compile`."""
        if not (is_optimised(module) or _signature(flat_signature(module)) == _signature(module)):
            return None
        return self._made_of(module, *_devices_of(module))

    def dumping(self, folder: Path, passes: str = ".*") -> Self:
        """This backend, which keeps the compiler's dump.

        Args:
            folder: gets it, created where it is missing; also when the compiler dies of the program.
            passes: regular expression of the passes to write; the ends of a compilation always are.
        """
        return type(self)(self.options, self.name, folder, passes)

    def compile_ahead(self, program: Module | Path) -> AheadResult:
        """Compile a module, or a file of StableHLO, into the dump; what comes of it is not looked at.

        Raises:
            Unsupported: the compiler refuses it.
            BackendFailed: the compiler died of it.
        """
        assert self._folder is not None, "a backend without a dump"
        self._folder.mkdir(parents=True, exist_ok=True)
        if isinstance(program, Module):
            grid, is_manual = _devices_of(program)
            return self._ahead(self._folder, program, _source(program, is_manual), grid)
        devices = self._process().call(f"{_CHILD}:grid_of", str(program), Grid)
        content = program.read_bytes()
        return self._asked(
            AheadRequest(
                target=self._target(devices.replicas * devices.partitions),
                text="",
                folder=str(self._folder),
                flags=self._flags,
                replicas=devices.replicas,
                partitions=devices.partitions,
                shardy=b"sdy." in content or b"sdy\0" in content,
                program=str(program),
            )
        )

    def _target(self, devices: int = 1) -> TargetRequest:
        target = self.options.target
        if target is None:
            raise UsageError(f"backend aot: say for what, as in aot:v5e; there are: {', '.join(TARGETS)}")
        topology = self.options.topology or target.topology(devices)
        named = f"{target.kind}:{topology}" if target.kind else topology
        return TargetRequest(target.platform, named, target.facts)

    def _process(self) -> XlaProcess:
        options = self.options
        platform = self._target().platform
        return shared_process(
            ProcessKey(
                "aot",
                options.python,
                1,
                options.timeout,
                options.environment,
                name=brief(self.name),
                extra=EXTRAS[platform],
            )
        )

    def _made_of(self, module: Module, grid: DeviceGrid, is_manual: bool = False) -> Module:
        """What the compiler makes of a program.

        Args:
            module: as it was given.
            grid: the devices.
            is_manual: each device runs it on its own arguments: the partitioner leaves it alone.
        """
        source = _source(module, is_manual)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            return _read(self._ahead(self._folder, module, source, grid))
        with brief_folder() as folder:
            return _read(self._ahead(Path(folder), module, source, grid))

    def _ahead(self, folder: Path, module: Module, source: Module, grid: DeviceGrid) -> AheadResult:
        text = self._text(source, grid)
        parameters, results = _memory_kinds(module)
        if len(parameters) != len(source.entry.parameters):
            parameters, results = (), ()  # arrays of dynamic size: their sizes are parameters, too
        request = AheadRequest(
            target=self._target(len(grid)),
            text=text,
            folder=str(folder),
            flags=self._flags,
            replicas=grid.replicas,
            partitions=grid.partitions,
            shardy="xla.sdy." in text,
            parameters=parameters,
            results=results,
        )
        try:
            return self._asked(request)
        except Unsupported as error:
            from hlotool.backends.xla.backend import located

            raise located(error, module) from error

    @property
    def _flags(self) -> tuple[Flag, ...]:
        passes: tuple[Flag, ...] = (("xla_dump_hlo_pass_re", self._passes),) if self._passes else ()
        return (*self.options.flags, *passes)

    def _asked(self, request: AheadRequest) -> AheadResult:
        try:
            return self._process().call(f"{_CHILD}:compile_ahead", request, AheadResult)
        except BackendCrashed as error:
            path = Path(request.folder) / LOG
            log = Log()
            log.append(path.read_bytes() if path.exists() else b"")
            if not (complaint := log.complaint()) or complaint in error.message:
                raise
            raise BackendCrashed(error.backend, f"{error.message}: {complaint}", log.tail()) from error

    def _text(self, source: Module, grid: DeviceGrid) -> str:
        program = in_shardy_alone(for_grid(source, grid))
        numbers = tuple(int(part) for part in self.setup.jaxlib.split(".")[:3])
        has_places = self._folder is not None and numbers >= READS_STACK_FRAMES
        if not has_places:
            program = replace(program, stack_frames=None)
        return print_module(program, PrintOptions(metadata=has_places))


def _devices_of(module: Module) -> tuple[DeviceGrid, bool]:
    """Those that a program is for, and whether the partitioner has nothing to do with it."""
    if module.num_partitions == 1 and module.replica_count == 1:
        grid = ONE_DEVICE
    else:
        grid = DeviceGrid(module.replica_count, module.num_partitions)
    return grid, grid.partitions > 1 and (is_optimised(module) or is_per_device(module))


def _signature(module: Module) -> list[Shape]:
    """What a program takes and returns, in whatever layout."""
    return [strip_layouts(i.shape) for i in (*module.entry.parameters, module.entry.root)]


def _source(module: Module, is_manual: bool) -> Module:
    """The program as the compiler is to take it; raises Unsupported for what reaches outside of it."""
    source = flat_signature(logical_module(module) if is_optimised(module) else module)
    refuse_the_outside(source)
    return manual_module(source) if is_manual else source


def _read(made: AheadResult) -> Module:
    return parse_module(Path(made.path).read_text(encoding="utf-8"), made.path)


def _memory_kinds(module: Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where each array of the parameters and of the result is, as the entry's layout says it."""
    layout = module.entry_layout
    kinds = [_kind(part) for shape in layout.parameters for part in array_shapes(shape)]
    return tuple(kinds), tuple(map(_kind, array_shapes(layout.result)))


def _kind(shape: ArrayShape) -> str:
    return _ON_HOST if shape.layout is not None and shape.layout.memory_space == _HOST_MEMORY else ""


class _OneDevice:
    """What the compiler made of a program, for one device."""

    def __init__(self, module: Module, inner: Executable) -> None:
        self._module = module
        self._inner = inner

    @property
    def notes(self) -> tuple[str, ...]:
        """What the backend says that runs it."""
        return notes_of(self._inner)

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. It is another program's instructions that run: no `probe`."""
        refuse_probes([probe])
        result = self._inner.run(flat_arguments(self._module, arguments))
        return value_of(self._module, _leaves(result))


class _Devices:
    """The same for several devices, each with arguments of its own."""

    def __init__(self, module: Module, inner: DevicesExecutable) -> None:
        self._module = module
        self._inner = inner

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; see `DevicesExecutable.run_devices`. `probes` must be None."""
        refuse_probes(probes or ())
        rows = self._inner.run_devices([flat_arguments(self._module, row) for row in arguments])
        return [value_of(self._module, _leaves(row)) for row in rows]


def _leaves(value: Value) -> list[Array]:
    """The arrays of a result, which is an array or a tuple of arrays."""
    return [np.asarray(part) for part in value] if isinstance(value, tuple) else [np.asarray(value)]
