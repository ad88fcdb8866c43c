"""Which devices take part in a collective, and meshes: named axes over devices.

A program runs on `replicas * partitions` devices; device = replica * partitions + partition, which XLA
calls the flattened id. The ids in `replica_groups` and `source_target_pairs` are replicas, partitions or
devices: which of these follows from the opcode, `channel_id` and `use_global_device_ids`.

XLA: operation_semantics.md#allreduce, collective_op_group_mode.h, collective_ops_utils.cc, replica_group.h;
mesh_and_axis.h (Mesh, AxisRef), tile_assignment.h (IotaTileAssignment).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod

from msgspec import Struct

from hlotool.errors import VerificationError
from hlotool.ir.attributes import Ints, IotaTiles, Mesh, MeshAxis, MeshGroups, ReplicaGroups
from hlotool.ir.module import Instruction

#: Devices that are listed one by one. No machine has as many, and a few digits in a text may mean more than
#: there is memory for.
MOST_LISTED = 1 << 20


def listed_count(sizes: Sequence[int]) -> int:
    """How many devices arrays of these sizes hold.

    Raises:
        ValueError: more than are listed one by one.
    """
    count = prod(sizes)
    if count > MOST_LISTED:
        raise ValueError(f"[{_commas(sizes)}] holds {count} devices, more than {MOST_LISTED} are not listed")
    return count


def transpose_order(order: Sequence[int], sizes: Ints, permutation: Sequence[int]) -> Ints:
    """`order`, read as an array of `sizes`, flattened again after its dimensions were permuted."""
    if prod(sizes) != len(order) or sorted(permutation) != list(range(len(sizes))):
        raise ValueError(f"{len(order)} devices cannot be [{_commas(sizes)}]T({_commas(permutation)})")
    strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    offsets = [0]
    for dimension in permutation:
        steps = [i * strides[dimension] for i in range(sizes[dimension])]
        offsets = [offset + step for offset in offsets for step in steps]
    return tuple(order[offset] for offset in offsets)


def iota_order(tiles: IotaTiles) -> Ints:
    """The device numbers of `[dims]<=[reshape_dims]T(permutation)`, row-major over `dims`.

    Raises:
        ValueError: the two lists of dimensions hold different numbers of devices, or too many.
    """
    count = listed_count(tiles.reshape_dims)
    if prod(tiles.dims) != count:
        raise ValueError(f"[{_commas(tiles.dims)}]<=[{_commas(tiles.reshape_dims)}] does not fit")
    permutation = tiles.permutation or tuple(range(len(tiles.reshape_dims)))
    return transpose_order(range(count), tiles.reshape_dims, permutation)


def mesh_order(mesh: Mesh) -> Ints:
    """The device numbers of a mesh, row-major over its axes.

    Raises:
        ValueError: the listed devices are not as many as the axes hold, or too many.
    """
    if mesh.maximal_device is not None:
        return (mesh.maximal_device,)
    count = listed_count([size for _, size in mesh.axes])
    if mesh.iota is not None:
        order = iota_order(mesh.iota)
    else:
        order = mesh.device_ids or tuple(range(count))
    if len(order) != count:
        raise ValueError(f"the mesh lists {len(order)} devices, its axes hold {count}")
    return order


def axis_size(mesh: Mesh, axis: MeshAxis) -> int:
    """Extent of an axis or of the part of one.

    Raises:
        ValueError: the mesh has no axis of that name.
    """
    return axis.size if axis.size is not None else _full_size(mesh, axis.name)


def order_along(mesh: Mesh, axes: Sequence[MeshAxis]) -> Ints:
    """The devices of a mesh, row-major with `axes` first.

    Args:
        mesh: the mesh.
        axes: distinct axes or parts of axes, in any order; what is left of the mesh follows in its own order.

    Raises:
        ValueError: unknown axis, parts that do not divide their axis, an axis used twice.
    """
    factors = _factors(mesh, axes)
    chosen = [i for axis in axes for i in _covered(mesh, axis, factors)]
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"an axis is used twice: {', '.join(map(_axis_text, axes))}")
    rest = [i for i in range(len(factors)) if i not in chosen]
    return transpose_order(mesh_order(mesh), tuple(size for _, _, size in factors), chosen + rest)


def _factors(mesh: Mesh, axes: Iterable[MeshAxis]) -> list[tuple[str, int, int]]:
    """Every mesh axis cut where some part begins or ends: name, product of the sizes before, size."""
    factors = []
    for name, size in mesh.axes:
        cuts = {1, size}
        for axis in axes:
            if axis.name == name and axis.size is not None:
                before = axis.pre_size or 1
                cuts |= {before, before * axis.size}
        ordered = sorted(cuts)
        for low, high in pairwise(ordered):
            if high % low:
                raise ValueError(f"axis {name!r} of size {size} cannot be cut at {ordered}")
            factors.append((name, low, high // low))
    return factors


def _covered(mesh: Mesh, axis: MeshAxis, factors: list[tuple[str, int, int]]) -> list[int]:
    """Positions in `factors` of what `axis` stands for."""
    full = _full_size(mesh, axis.name)
    low = axis.pre_size or 1
    high = low * axis_size(mesh, axis)
    if full % high:
        raise ValueError(f"{_axis_text(axis)} is no part of an axis of size {full}")
    return [i for i, (name, before, _) in enumerate(factors) if name == axis.name and low <= before < high]


def _full_size(mesh: Mesh, name: str) -> int:
    for known, size in mesh.axes:
        if known == name:
            return size
    raise ValueError(f"the mesh has no axis {name!r}")


def _axis_text(axis: MeshAxis) -> str:
    return axis.name if axis.size is None else f"{axis.name}:({axis.pre_size}){axis.size}"


def _commas(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


class DeviceGrid(Struct, frozen=True):
    """The devices a program runs on.

    Attributes:
        replicas: copies of the program, each with its own inputs.
        partitions: devices that share the work of one replica.
    """

    replicas: int = 1
    partitions: int = 1

    @property
    def count(self) -> int:
        """How many devices there are; `len` holds fewer than a text can name."""
        return self.replicas * self.partitions

    def __len__(self) -> int:
        return self.count

    def device(self, replica: int, partition: int) -> int:
        """Number of a device."""
        return replica * self.partitions + partition

    def position(self, device: int) -> tuple[int, int]:
        """Replica and partition of a device."""
        return divmod(device, self.partitions)

    def __str__(self) -> str:
        return f"{self.replicas} replicas of {self.partitions} partitions"


#: Programs for a single device.
ONE_DEVICE = DeviceGrid()


class GroupMode(enum.Enum):
    """What the ids in replica groups are."""

    #: Replicas; every partition forms its own groups.
    CROSS_REPLICA = "cross_replica"
    #: Partitions; every replica forms its own groups.
    CROSS_PARTITION = "cross_partition"
    #: Replicas; all their partitions take part.
    CROSS_REPLICA_AND_PARTITION = "cross_replica_and_partition"
    #: Devices.
    FLATTENED_ID = "flattened_id"


#: Opcodes whose groups `use_global_device_ids` can widen; the others only know replicas or partitions.
_TAKES_GLOBAL_IDS = frozenset(
    {"all-gather", "all-gather-start", "all-reduce", "all-reduce-start", "reduce-scatter"}
)


def group_mode(instruction: Instruction) -> GroupMode:
    """What the ids in the instruction's groups or pairs are.

    Raises:
        VerificationError: `use_global_device_ids=true` without a channel.
    """
    has_channel = "channel_id" in instruction.attributes
    is_global = instruction.flag("use_global_device_ids")
    if is_global and not has_channel:
        raise _invalid(instruction, "use_global_device_ids=true needs a channel_id")
    if not has_channel:
        return GroupMode.CROSS_REPLICA
    if instruction.opcode not in _TAKES_GLOBAL_IDS:
        return GroupMode.CROSS_PARTITION
    return GroupMode.FLATTENED_ID if is_global else GroupMode.CROSS_REPLICA_AND_PARTITION


def expand_groups(groups: ReplicaGroups) -> tuple[Ints, ...]:
    """The ids of each group, in order; `()` stands for one group of everybody.

    Raises:
        ValueError: sizes that do not fit, unknown mesh axes.
    """
    if groups.iota is not None:
        if len(groups.iota.dims) != 2:
            raise ValueError(f"replica groups have two dimensions, not {len(groups.iota.dims)}")
        return _chunks(iota_order(groups.iota), groups.iota.dims[1])
    if groups.mesh is not None:
        return _mesh_groups(groups.mesh)
    return groups.groups or ()


def _mesh_groups(groups: MeshGroups) -> tuple[Ints, ...]:
    """The devices that differ only along the axes given, listed with the first of these axes major."""
    order = order_along(groups.mesh, groups.axes)
    size = prod(axis_size(groups.mesh, axis) for axis in groups.axes)
    return _chunks(transpose_order(order, (size, len(order) // size), (1, 0)), size)


def _chunks(order: Ints, size: int) -> tuple[Ints, ...]:
    return tuple(order[i : i + size] for i in range(0, len(order), size))


def device_groups(instruction: Instruction, grid: DeviceGrid) -> tuple[Ints, ...]:
    """The devices of each group of a collective, in the order that the collective goes by.

    Raises:
        VerificationError: ids out of range, twice in the groups, or a form that XLA does not allow.
    """
    mode = group_mode(instruction)
    try:
        ids = expand_groups(instruction.replica_groups)
    except ValueError as error:
        raise _invalid(instruction, str(error)) from None
    limit = id_limit(mode, grid)
    if not ids:
        if mode is GroupMode.FLATTENED_ID:
            raise _invalid(instruction, "device ids (use_global_device_ids=true) cannot be empty")
        ids = (tuple(range(limit)),)
    _check_ids(instruction, [i for group in ids for i in group], limit, grid)
    return tuple(_placed_groups(mode, ids, grid))


def _placed_groups(mode: GroupMode, ids: tuple[Ints, ...], grid: DeviceGrid) -> Iterable[Ints]:
    """Groups of ids as groups of devices."""
    partitions, replicas = range(grid.partitions), range(grid.replicas)
    for group in ids:
        if mode is GroupMode.CROSS_REPLICA:
            yield from (tuple(grid.device(r, p) for r in group) for p in partitions)
        elif mode is GroupMode.CROSS_PARTITION:
            yield from (tuple(grid.device(r, p) for p in group) for r in replicas)
        elif mode is GroupMode.CROSS_REPLICA_AND_PARTITION:
            yield tuple(grid.device(r, p) for r in group for p in partitions)
        else:
            yield group


def device_pairs(instruction: Instruction, grid: DeviceGrid) -> tuple[tuple[int, int], ...]:
    """The (source, target) devices of a collective-permute.

    Raises:
        VerificationError: ids out of range, or a source or target that occurs twice.
    """
    ids = source_target_ids(instruction)
    for column in ([source for source, _ in ids], [target for _, target in ids]):
        _check_ids(instruction, column, id_limit(group_mode(instruction), grid), grid)
    return place_pairs(instruction, ids, grid)


def place_pairs(
    instruction: Instruction, ids: Sequence[tuple[int, int]], grid: DeviceGrid
) -> tuple[tuple[int, int], ...]:
    """Pairs of ids as pairs of devices: within each replica when there is a channel, else each partition."""
    if group_mode(instruction) is GroupMode.CROSS_REPLICA:
        return tuple((grid.device(s, p), grid.device(t, p)) for s, t in ids for p in range(grid.partitions))
    return tuple((grid.device(r, s), grid.device(r, t)) for s, t in ids for r in range(grid.replicas))


def source_target_ids(instruction: Instruction) -> list[tuple[int, int]]:
    """`source_target_pairs` as written.

    Raises:
        VerificationError: not a list of pairs.
    """
    pairs: tuple[Ints, ...] = instruction.listed("source_target_pairs", tuple, ())
    if any(len(pair) != 2 for pair in pairs):
        raise _invalid(instruction, "source_target_pairs takes pairs of ids")
    return [(source, target) for source, target in pairs]


def id_limit(mode: GroupMode, grid: DeviceGrid) -> int:
    """How many ids there are of the kind that `mode` says."""
    if mode is GroupMode.FLATTENED_ID:
        return grid.count
    return grid.partitions if mode is GroupMode.CROSS_PARTITION else grid.replicas


def _check_ids(instruction: Instruction, ids: list[int], limit: int, grid: DeviceGrid) -> None:
    wrong = [i for i in ids if not 0 <= i < limit]
    if wrong:
        raise _invalid(instruction, f"id {wrong[0]} is out of range [0, {limit}) for {grid}")
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise _invalid(instruction, f"id {twice} occurs twice")


def _invalid(instruction: Instruction, message: str) -> VerificationError:
    return instruction.error("replica-groups", f"{instruction.opcode}: {message}")
