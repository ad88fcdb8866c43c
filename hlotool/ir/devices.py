"""Which devices take part in a collective.

A program runs on `replicas * partitions` devices; device = replica * partitions + partition, which XLA calls
the flattened id. The ids in `replica_groups` and `source_target_pairs` are replicas, partitions or devices:
which of these follows from the opcode, `channel_id` and `use_global_device_ids`.

XLA: operation_semantics.md#allreduce, collective_op_group_mode.h, collective_ops_utils.cc, replica_group.h.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from hlotool.errors import VerificationError
from hlotool.ir.attributes import Ints, MeshGroups, ReplicaGroups
from hlotool.ir.mesh import axis_size, iota_order, order_along, transpose_order
from hlotool.ir.module import Instruction


@dataclass(frozen=True, slots=True)
class DeviceGrid:
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


#: Programs that talk to nobody.
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
