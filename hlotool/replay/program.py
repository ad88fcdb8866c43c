"""A stage of a dump, ready to be run on a backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from hlotool.analysis.work import of_reading
from hlotool.backends.base import Backend, CompilingBackend, DevicesBackend, SlowToStart
from hlotool.backends.registry import RUNS_COMPILED, get_backend
from hlotool.dump.loading import captured_program, load_stage
from hlotool.dump.records import Capture, DumpModule, Stage
from hlotool.errors import Location, Unsupported
from hlotool.ir.attributes import Sharding
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import has_manual_regions, is_per_device
from hlotool.ir.types import strip_layouts
from hlotool.ir.verifier import verify_to_execute
from hlotool.numerics.dataflow import Leaves, leaf_facts
from hlotool.parse.region_borders import meshes_of
from hlotool.replay.devices.parameter_sharding import parameter_shardings
from hlotool.replay.devices.result_sharding import result_shardings, stated_sharding
from hlotool.replay.devices.runners import EachDevice, OneDevice, Partitioned, Runner
from hlotool.workers.work_limit import spend

#: Devices of the largest clusters that train one program today; each is a thread here.
_MOST_DEVICES = 1 << 14
#: Units of work of a compiler in a process of its own.
_COMPILED_ELSEWHERE = 100_000_000


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled program.

    Attributes:
        label: of its stage.
        path: of its file.
        module: parsed and verified.
        runner: runs it.
        backend: name and version of what runs it.
        compiled_by: compiles it by another backend, in the same way.
        whole: the program on global arrays that it was made from, where it is for each device and takes and
            returns these arrays all the same.
        warnings: rules of the language that it breaks, on which execution does not depend.
        made_by: the backend whose compiler made it of what is in the file; empty for what is there.
    """

    label: str
    path: str
    module: Module
    runner: Runner
    backend: str
    compiled_by: Callable[[Backend], Runner]
    whole: Program | None = None
    warnings: tuple[str, ...] = ()
    made_by: str = ""

    @cached_property
    def facts(self) -> Leaves:
        """What each leaf of its result depends on."""
        return leaf_facts(self.module) * self.runner.copies


def load_program(
    owner: DumpModule, stage: Stage, backend: str | Backend, reference: Program | None = None
) -> Program:
    """Read, parse, verify and compile a stage.

    Args:
        owner: the dump's module that the stage belongs to.
        stage: one of its stages.
        backend: what runs it, or its name.
        reference: the program that it is compared with. One that was partitioned later than the reference is
            made to take and return the reference's global arrays.

    Raises:
        DumpError: the file cannot be read.
        InputError: it holds no valid HLO.
        Unsupported: elided constants, or something the backend cannot execute.
        UsageError: no such backend.
    """
    label = stage.title
    module = load_stage(owner, stage)
    sharding = stated_sharding(owner, stage, module)
    return compile_program(label, str(stage.source), module, backend, reference, sharding)


def snapshot_program(capture: Capture, backend: str) -> Program:
    """The program inside a captured execution, for dumps that hold nothing else; raises as `load_program`."""
    return compile_program(capture.kind.value, str(capture.source), captured_program(capture), backend)


def compile_program(
    label: str,
    path: str,
    module: Module,
    backend: str | Backend,
    reference: Program | None = None,
    sharding: Sharding | None = None,
) -> Program:
    """Verify and compile `module`, whose result is spread as `sharding` says; raises as `load_program`."""
    warnings = tuple(f"XLA's verifier rejects this: {finding}" for finding in verify_to_execute(module))
    engine = get_backend(backend) if isinstance(backend, str) else backend
    spend(of_reading(module) + (_COMPILED_ELSEWHERE if isinstance(engine, SlowToStart) else 0))
    if isinstance(engine, CompilingBackend) and (made := engine.made_of(module)) is not None:
        label = f"{label} compiled by {engine.version}"
        program = compile_program(label, path, made, RUNS_COMPILED, reference, sharding)
        return replace(program, made_by=engine.name)

    def compiled_by(engine: Backend) -> Runner:
        return _compile(module, engine, reference, sharding, path)

    runner = compiled_by(engine)
    whole = reference if isinstance(runner, Partitioned) else None
    return Program(label, path, module, runner, engine.version, compiled_by, whole, warnings)


def _compile(
    module: Module, engine: Backend, reference: Program | None, sharding: Sharding | None, path: str
) -> Runner:
    """The program as something to run; see `compile_program`."""
    grid = DeviceGrid(module.replica_count, module.num_partitions)
    is_for_one = _is_for_one(module, reference)
    if grid.count > _MOST_DEVICES and (has_manual_regions(module) or not is_for_one):
        why = f"{grid} are {grid.count} devices, and {_MOST_DEVICES} at most are simulated in one process"
        raise Unsupported(why, location=Location(path))
    if is_for_one:
        return OneDevice(module, engine.compile(module))
    if not isinstance(engine, DevicesBackend):
        raise Unsupported(f"backend {engine.name} runs programs for one device")
    executable = engine.compile_devices(module, grid)
    if reference is None or reference.runner.copies > 1:
        return EachDevice(module, executable, len(grid))
    try:
        meshes = meshes_of(reference.module)
        given = parameter_shardings(module, reference.module)
        shardings = result_shardings(module, sharding, reference.module)
        return Partitioned(module, executable, reference.runner, given, shardings, meshes)
    except ValueError as error:
        raise Unsupported(f"sharding of the entry: {error}", location=Location(path)) from error


def _is_for_one(module: Module, reference: Program | None) -> bool:
    """Whether one device can stand for all: the program is on global arrays, or all do the same."""
    if module.replica_count * module.num_partitions == 1 or has_manual_regions(module):
        return True
    if is_per_device(module) or reference is None:
        return not is_per_device(module)
    shapes = [strip_layouts(p.shape) for p in module.entry.parameters]
    return shapes == [strip_layouts(shape) for shape in reference.runner.parameters]
