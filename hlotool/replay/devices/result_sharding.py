"""How the result of a partitioned program is spread over the devices, where the dump tells.

The partitioned program's own text rarely says it; its proto does, and what the partitioner was given, where
the dump has the program after every pass. Often the program that it was made from does, too: where the user
or a manual region (JAX's shard_map) has fixed the sharding of a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.dump.loading import load_stage
from hlotool.dump.records import DumpModule, Stage
from hlotool.ir.attributes import Mesh, Sharding
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import LEAVES_REGION
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex, leaves
from hlotool.ir.walk import through_tuple
from hlotool.parse.region_borders import border_of
from hlotool.parse.sdy import module_meshes, parse_shardings
from hlotool.values.sharding import leaf_shardings, local_dims

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
        from hlotool.parse.proto.module import parse_output_sharding

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
