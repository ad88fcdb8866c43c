"""Programs of a replay as the search for a fault looks into them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hlotool.backends.base import DevicesBackend, DevicesExecutable, Probe, Value
from hlotool.backends.registry import get_backend, get_devices_backend
from hlotool.errors import Unsupported
from hlotool.facts.retyping import retyped_value
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.attributes import Mesh
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_one_program_with_regions
from hlotool.ir.types import Shape, ShapeIndex
from hlotool.judge.locate.recording import Subject, Watch, on_one_device
from hlotool.parser.shardy import meshes_of as of_module
from hlotool.runs.program import Program
from hlotool.runs.runners import OneDevice

_BACKEND = "numpy"


def subjects(reference: Program, tested: Program, arguments: Sequence[Any]) -> tuple[Subject, Subject]:
    """Two programs on the same arguments, and on others that make sense to the first."""
    return subject(reference, reference, arguments), subject(tested, reference, arguments)


def leaves_of(program: Program, outputs: Sequence[ShapeIndex]) -> list[ShapeIndex]:
    """The leaves of the module's own result that outputs of a replay are, on whichever device."""
    own = [index[1:] for index in outputs] if program.runner.copies > 1 else outputs
    return list(dict.fromkeys(own))


def on_every_device(program: Program, arguments: Sequence[Any]) -> Subject:
    """A program on its own arguments, with what each device computes in manual regions.

    Around the regions all devices have the same global arrays, so that the program is one for one device, and
    the search looks into the first.
    """
    module = program.module
    if not (isinstance(program.runner, OneDevice) and is_one_program_with_regions(module)):
        return subject(program, program, arguments)
    grid = DeviceGrid(1, module.num_partitions)

    def run(copy: Module, watch: Watch) -> Value:
        own = [retyped_value(value, p.shape) for value, p in zip(arguments, copy.entry.parameters)]
        everywhere = [own] * len(grid)
        engine = get_devices_backend(_BACKEND).compile_devices(copy, grid)
        return engine.run_devices(everywhere, watch(everywhere))[0]

    return Subject(module, run, meshes=meshes_of(program))


def subject(program: Program, origin: Program, arguments: Sequence[Any]) -> Subject:
    """A program on the arguments of another, which says what other arguments make sense."""

    def others(seed: int) -> Sequence[Any]:
        return generate_inputs(origin.module, seed).values

    if isinstance(program.runner, OneDevice):
        return on_one_device(program.module, arguments, others)

    @cache
    def expected() -> Any:
        whole = program.whole
        return None if whole is None else whole.compiled_by(get_backend(_BACKEND)).run(arguments).value

    def run(copy: Module, watch: Watch) -> Value:
        value: Value = program.compiled_by(Probing(copy, watch)).run(arguments, expected()).value
        return value

    return Subject(program.module, run, meshes=meshes_of(program), copies=program.runner.copies)


def meshes_of(program: Program) -> tuple[Mesh, ...]:
    """The meshes of devices that a program speaks of, or the one on global arrays that it was made from."""
    return of_module((program.whole or program).module)


class Probing:
    """A backend that executes a copy in place of what it is given, with a probe on each device.

    Args:
        copy: of the program for each device.
        watch: gives the probes.
        engine: executes the copy; the numpy backend by default.
    """

    name = _BACKEND
    version = _BACKEND

    def __init__(self, copy: Module, watch: Watch, engine: DevicesBackend | None = None) -> None:
        self._copy = copy
        self._watch = watch
        self._engine = engine or get_devices_backend(_BACKEND)
        self._executable: DevicesExecutable | None = None
        self._types: list[Shape | None] = []

    def compile(self, module: Module) -> Any:
        """See `Backend`; this one is for several devices."""
        raise Unsupported("a program for one device")

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesExecutable:
        """See `DevicesBackend`."""
        parameters = zip(module.entry.parameters, self._copy.entry.parameters)
        self._types = [None if one.shape == other.shape else other.shape for one, other in parameters]
        self._executable = self._engine.compile_devices(self._copy, grid)
        return self

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """See `DevicesExecutable`; floats are given in the types of the copy where these are others."""
        assert self._executable is not None
        values = [
            [
                retyped_value(value, shape) if shape is not None else value
                for value, shape in zip(row, self._types)
            ]
            for row in arguments
        ]
        return self._executable.run_devices(values, self._watch(values))
