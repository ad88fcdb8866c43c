"""A stage of a dump, ready to be run, and how its arguments and results are spread over devices.

Results: the partitioned program's own text rarely says it; its proto does, and what the partitioner was
given, where the dump has the program after every pass. Often the program that it was made from does, too:
where the user or a manual region (JAX's shard_map) has fixed the sharding of a result.

Arguments: up to jaxlib 0.11 the parameters say so themselves. Those of jaxlib 0.12 do not: then the program
that it was made from tells, by the shardings of its parameters and of what it makes of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hlotool.backends.base import Backend, CompilingBackend, DevicesBackend, SlowToStart, target_of
from hlotool.backends.registry import get_backend
from hlotool.errors import Location, Unsupported
from hlotool.facts.dataflow import Leaves, leaf_facts
from hlotool.facts.sharding import leaf_shardings, local_dims
from hlotool.facts.work import of_reading
from hlotool.inputs.infer_sharding import part_counts
from hlotool.ir.attributes import Mesh, Sharding
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import LEAVES_REGION, has_manual_regions, is_per_device
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, leaves, strip_layouts
from hlotool.ir.verifier import verify_to_execute
from hlotool.ir.walk import through_tuple, users
from hlotool.parser.shardy import border_of, meshes_of, module_meshes, parse_shardings
from hlotool.runs.runners import EachDevice, OneDevice, Partitioned, Runner
from hlotool.sources.loading import captured_program, load_stage
from hlotool.sources.records import Capture, DumpModule, Stage
from hlotool.system.resources import spend

#: Custom calls whose operand is the result, with the sharding that the user asked for.
ANNOTATIONS = frozenset({"Sharding", "xla.sdy.FuncResultSharding"})


#: The pass that turns a program on global arrays into one for each device.
_PARTITIONER = "spmd-partitioning"
#: Stages before it that are asked: it cleans up before it begins.
_LOOKED_AT = 3


def stated_sharding(owner: DumpModule, stage: Stage, module: Module) -> Sharding | None:
    """What a dump says of the result of a partitioned program.

    Its own text and the proto beside it come first, then the program that the partitioner was given.

    Args:
        owner: the dump's module.
        stage: one of its stages.
        module: the program of that stage.

    Raises:
        DumpError: what the partitioner was given cannot be read.
        InputError: that, or the proto, is damaged.
    """
    if module.entry.root.sharding is not None:
        return module.entry.root.sharding
    if stage.proto is not None:
        from hlotool.parser.proto.module import parse_output_sharding

        if found := parse_output_sharding(stage.proto.read_bytes(), str(stage.proto)):
            return found
    given = (load_stage(owner, one).entry.root.sharding for one in _before_partitioner(owner, stage))
    return next((sharding for sharding in given if sharding is not None), None)


def _before_partitioner(owner: DumpModule, stage: Stage) -> list[Stage]:
    """The stages right before a partitioned one was made, the last one first."""
    if stage not in owner.stages:
        return []
    earlier = owner.stages[: owner.stages.index(stage) + 1]
    made = next((n for n, one in enumerate(earlier) if one.after_pass == _PARTITIONER), 0)
    return list(reversed(earlier[max(made - _LOOKED_AT, 0) : made]))


def result_shardings(module: Module, stated: Sharding | None, origin: Module) -> list[Sharding | None]:
    """One sharding for each leaf of a partitioned program's result; None where the dump does not tell.

    Args:
        module: the partitioned program.
        stated: what it says itself.
        origin: the program on global arrays that it was made from. What that declares counts where it fits.

    Raises:
        ValueError: malformed shardings.
    """
    shapes = [shape for _, shape in leaves(module.entry.root.shape)]
    wholes = [shape for _, shape in leaves(origin.entry.root.shape)]
    if stated is not None or len(shapes) != len(wholes):
        return leaf_shardings(module.entry.root.shape, stated)
    return [
        sharding if sharding is not None and fits(sharding, shape, whole, module.num_partitions) else None
        for sharding, shape, whole in zip(declared_shardings(origin), shapes, wholes)
    ]


def fits(sharding: Sharding, local: Shape, whole: Shape, count: int) -> bool:
    """Whether each of `count` devices holds `local` of an array `whole` that lies like this."""
    if not isinstance(local, ArrayShape) or not isinstance(whole, ArrayShape):
        return False
    try:
        return local_dims(whole.dims, sharding, count) == local.dims
    except ValueError:
        return False


def declared_shardings(module: Module) -> list[Sharding | None]:
    """What a program on global arrays fixes for each leaf of its result; None where the partitioner chooses.

    Raises:
        ValueError: unreadable shardings.
    """
    root = module.entry.root
    whole = leaf_shardings(root.shape, root.sharding)
    meshes = module_meshes(module)
    paths = [index for index, _ in leaves(root.shape)]
    return [
        own if own is not None and _is_fixed(own) else _declared(*_maker(root, index), meshes)
        for own, index in zip(whole, paths)
    ]


def _maker(instruction: Instruction, index: ShapeIndex) -> tuple[Instruction, ShapeIndex]:
    """The instruction that makes a leaf, and the leaf's index in its result; tuples are looked through."""
    while (source := through_tuple(instruction, index)) is not None:
        instruction, index = source
    return instruction, index


def _declared(instruction: Instruction, index: ShapeIndex, meshes: dict[str, Mesh]) -> Sharding | None:
    target = instruction.custom_call_target
    number = index[0] if index else 0
    if target in ANNOTATIONS or target == "SPMDShardToFullShape":
        text = instruction.frontend_attribute("xla.sdy.sharding")
        stated: Sequence[Sharding | None] = parse_shardings(text, meshes) if text else ()
    elif target in LEAVES_REGION:
        border = border_of(instruction, meshes)
        if not border.is_fully_manual:
            return None
        stated = border.shardings
    else:
        return None
    found = stated[number] if number < len(stated) else instruction.sharding
    return found if found is not None and _is_fixed(found) else None


def _is_fixed(sharding: Sharding) -> bool:
    """Nothing in it is open to further splitting."""
    if sharding.named is not None:
        return all(dim.closed for dim in sharding.named.dims)
    return sharding.kind in ("tiled", "replicated", "maximal") and "manual" not in sharding.last_tile_dims


_REPLICATED = Sharding("replicated")


def parameter_shardings(module: Module, origin: Module) -> list[list[Sharding | None]]:
    """One sharding for each leaf of each parameter.

    Args:
        module: the partitioned program.
        origin: the program on global arrays that it was made from.

    Raises:
        ValueError: malformed shardings; a parameter is a part of the other program's, and nothing says which.
    """
    wholes = origin.entry.parameters
    readers = users(origin.entry)
    return [
        _of_origin(p, wholes[n], readers[wholes[n]], module.num_partitions)
        if p.sharding is None and n < len(wholes)
        else leaf_shardings(p.shape, p.sharding or _REPLICATED)
        for n, p in enumerate(module.entry.parameters)
    ]


def _of_origin(
    own: Instruction, whole: Instruction, readers: list[Instruction], count: int
) -> list[Sharding | None]:
    """The shardings of the leaves of a parameter without one, from the parameter that it is a part of."""
    locals_, wholes = ([shape for _, shape in leaves(one.shape)] for one in (own, whole))
    if len(locals_) != len(wholes):
        return [_REPLICATED] * len(locals_)
    stated = [whole.sharding]
    annotations = {r.sharding for r in readers if r.custom_call_target in ANNOTATIONS}
    # What several annotations say may differ, and the partitioner chose one of them.
    stated += annotations if len(annotations) == 1 else ()
    listed = [leaf_shardings(whole.shape, sharding) for sharding in stated]
    return [
        _chosen(own, local, other, [one[n] for one in listed], count)
        for n, (local, other) in enumerate(zip(locals_, wholes))
    ]


def _chosen(
    own: Instruction, local: Shape, whole: Shape, stated: list[Sharding | None], count: int
) -> Sharding:
    """The first of the shardings that makes `local` of `whole`."""
    if not (isinstance(local, ArrayShape) and isinstance(whole, ArrayShape)) or local.dims == whole.dims:
        return _REPLICATED
    for sharding in stated:
        if sharding is not None and fits(sharding, local, whole, count):
            return sharding
    if any(part_counts(local.dims, whole.dims, count)):
        text = f"{own.name} is a part of {whole.logical_text()}, {local.logical_text()}"
        raise ValueError(f"{text}, and the dump does not say which part is on which device")
    return _REPLICATED


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
        target: what its backend compiles for (`backends.base.target_of`).
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
    target: str = ""

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
        program = compile_program(label, path, made, engine.runs, reference, sharding)
        return replace(program, made_by=engine.name)

    def compiled_by(engine: Backend) -> Runner:
        return _compile(module, engine, reference, sharding, path)

    runner = compiled_by(engine)
    whole = reference if isinstance(runner, Partitioned) else None
    target = target_of(engine)
    return Program(label, path, module, runner, engine.version, compiled_by, whole, warnings, target=target)


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
