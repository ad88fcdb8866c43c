"""Replica groups and pairs. XLA: hlo_verifier.cc (CheckReplicaGroups, CheckDuplicatedSourceOrTarget)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hlotool.ir.attributes import AttributeValue, Ints
from hlotool.ir.devices import DeviceGrid, GroupMode, expand_groups, group_mode, id_limit, source_target_ids
from hlotool.ir.module import Instruction
from hlotool.ir.shapes.base import compatible
from hlotool.ir.types import UNBOUNDED, ArrayShape, Shape, TupleShape
from hlotool.ir.verification.findings import Findings

_WITH_GROUPS = frozenset(
    {
        "all-gather",
        "all-gather-start",
        "all-reduce",
        "all-reduce-start",
        "all-to-all",
        "ragged-all-to-all",
        "reduce-scatter",
    }
)
_PERMUTES = frozenset({"collective-permute", "collective-permute-start"})

#: Opcodes that cut an operand along a dimension, or put operands together along it.
_SHARDING = frozenset({"all-gather", "all-gather-start", "all-to-all", "reduce-scatter"})

#: Opcodes whose groups may differ in size.
_UNEVEN = frozenset({"all-reduce", "all-reduce-start"})


def check_collectives(findings: Findings) -> None:
    """All collectives of the module."""
    constrained: set[bool] = set()
    for instruction in findings.module.instructions():
        if instruction.opcode in _WITH_GROUPS:
            with findings.collecting(instruction):
                _check_groups(findings, instruction)
        elif instruction.opcode in _PERMUTES:
            with findings.collecting(instruction):
                _check_pairs(findings, instruction)
        if instruction.opcode in _UNEVEN:
            constrained.add(instruction.flag("constrain_layout"))
    findings.check(
        len(constrained) < 2, "constrain-layout", "either all or no all-reduce may have constrain_layout"
    )


def _limit(findings: Findings, mode: GroupMode) -> int:
    """How many ids there are; 1 means that the module does not say."""
    return id_limit(mode, DeviceGrid(findings.module.replica_count, findings.module.num_partitions))


def _check_groups(findings: Findings, instruction: Instruction) -> None:
    mode = group_mode(instruction)
    try:
        groups = expand_groups(instruction.replica_groups)
    except ValueError as error:
        findings.add("replica-groups", str(error), instruction)
        return
    if groups:
        _check_ids(findings, instruction, groups, _limit(findings, mode))
        _check_sizes(findings, instruction, groups)
    elif mode is GroupMode.FLATTENED_ID:
        findings.add(
            "replica-groups", "with use_global_device_ids the replica groups must be given", instruction
        )
        return
    elif _limit(findings, mode) == 1:
        return
    size = len(groups[0]) if groups else _limit(findings, mode)
    if mode is GroupMode.CROSS_REPLICA_AND_PARTITION:
        if findings.module.num_partitions == 1:
            return  # binary protos do not say how many partitions there are
        size *= findings.module.num_partitions
    _check_shards(findings, instruction, size)


def _check_ids(findings: Findings, instruction: Instruction, groups: tuple[Ints, ...], limit: int) -> None:
    """Together the groups hold each id once."""
    ids = [i for group in groups for i in group]
    expected = len(ids) if limit == 1 else limit
    findings.check(
        sorted(ids) == list(range(expected)),
        "replica-groups",
        f"the replica groups must hold each of 0 to {expected - 1} once",
        instruction,
    )


def _check_sizes(findings: Findings, instruction: Instruction, groups: tuple[Ints, ...]) -> None:
    sizes = {len(group) for group in groups}
    findings.check(0 not in sizes, "replica-groups", "a replica group must not be empty", instruction)
    findings.check(
        len(sizes) == 1 or instruction.opcode in _UNEVEN,
        "replica-groups",
        f"the replica groups must have one size, not {sorted(sizes)}",
        instruction,
    )


def _check_shards(findings: Findings, instruction: Instruction, size: int) -> None:
    """Shapes shrink or grow by the size of a group."""
    opcode, dimensions = instruction.opcode, instruction.integers("dimensions", ())
    if opcode == "all-to-all" and not dimensions:
        _check_all_to_all(findings, instruction, size)
    if size == 1 or opcode not in _SHARDING or not dimensions:
        return
    whole, part = _first(_result(instruction)), _first(instruction.operands[0].shape)
    if opcode == "reduce-scatter":
        whole, part = part, whole
    dimension = dimensions[0]
    if whole is None or part is None or dimension >= part.rank:
        return
    if opcode == "all-to-all":
        findings.check(
            part.dims[dimension] == UNBOUNDED or part.dims[dimension] % size == 0,
            "replica-groups",
            f"dimension {dimension} must be divisible among {size} devices: {part.dims[dimension]}",
            instruction,
        )
        return
    findings.check(
        UNBOUNDED in (whole.dims[dimension], part.dims[dimension])
        or whole.dims[dimension] == size * part.dims[dimension],
        "replica-groups",
        f"dimension {dimension} must be {size} times as large on the one side as on the other: "
        f"{whole.dims[dimension]} and {part.dims[dimension]}",
        instruction,
    )


def _result(instruction: Instruction) -> Shape:
    """What a collective gives, or will give when it is done."""
    shape = instruction.shape
    if instruction.opcode != "all-gather-start" or not isinstance(shape, TupleShape):
        return shape
    return shape.elements[1] if len(shape.elements) > 1 else shape


def _check_all_to_all(findings: Findings, instruction: Instruction, size: int) -> None:
    """The tuple form has one operand per device of a group, all in one layout."""
    findings.check(
        len(instruction.operands) == size,
        "operand-count",
        f"all-to-all among {size} devices needs as many operands, not {len(instruction.operands)}",
        instruction,
    )
    shapes = (operand.shape for operand in instruction.operands)
    layouts = {shape.minor_to_major if isinstance(shape, ArrayShape) else () for shape in shapes}
    findings.check(
        len(layouts) == 1,
        "collective-layout",
        "the operands of all-to-all must have one layout",
        instruction,
    )


def _first(shape: Shape) -> ArrayShape | None:
    shape = shape.elements[0] if isinstance(shape, TupleShape) and shape.elements else shape
    return shape if isinstance(shape, ArrayShape) else None


def _check_pairs(findings: Findings, instruction: Instruction) -> None:
    """Each device sends and receives once; in the in-place form once per slice."""
    limit = _limit(findings, group_mode(instruction))
    pairs = source_target_ids(instruction)
    times = _slice_count(findings, instruction) if "slice_sizes" in instruction.attributes else 1
    for at, role in enumerate(("source", "target")):
        ids = [pair[at] for pair in pairs]
        findings.check(
            all(i >= 0 and (limit == 1 or i < limit) for i in ids),
            "replica-groups",
            f"{role} ids must be within [0, {limit}): {ids}",
            instruction,
        )
        findings.check(
            all(count <= times for count in Counter(ids).values()),
            "replica-groups",
            f"no {role} id may occur more than {times} times: {ids}",
            instruction,
        )


def _slice_count(findings: Findings, instruction: Instruction) -> int:
    """How many slices the in-place form moves: operands are buffers, then an offset per buffer and slice."""
    shapes = [o.shape for o in instruction.operands]
    if len(shapes) != 4:
        return 1
    for buffer, offsets in ((shapes[0], shapes[2]), (shapes[1], shapes[3])):
        findings.check(
            isinstance(buffer, TupleShape) == isinstance(shapes[0], TupleShape) and _fits(buffer, offsets),
            "shape-mismatch",
            f"the offsets {offsets} do not fit the buffer {buffer}",
            instruction,
        )
    offsets = shapes[2]
    if isinstance(shapes[0], TupleShape) and isinstance(offsets, TupleShape) and offsets.elements:
        offsets = offsets.elements[0]
    return len(offsets.elements) if isinstance(offsets, TupleShape) else 1


def _fits(buffer: Shape, offsets: Shape) -> bool:
    """One index per dimension of an array, or several such indices; for a tuple one of these per element."""
    if not isinstance(offsets, TupleShape):
        return False
    if isinstance(buffer, TupleShape):
        return len(buffer.elements) == len(offsets.elements) and all(
            map(_fits, buffer.elements, offsets.elements)
        )
    if not isinstance(buffer, ArrayShape):
        return False
    if all(isinstance(e, ArrayShape) for e in offsets.elements):
        return len(offsets.elements) == buffer.rank
    return all(isinstance(e, TupleShape) and len(e.elements) == buffer.rank for e in offsets.elements)


# Host transfers that share a channel. XLA: hlo_verifier.cc VerifyChannels.

#: Attributes that say nothing about what is transferred.
_IGNORED = frozenset({"sharding", "backend_config", "origin", "statistics"})


def check_host_channels(findings: Findings) -> None:
    """All host sends and receives of one channel are alike but for their operands."""
    first: dict[object, Instruction] = {}
    for instruction in findings.module.instructions():
        attributes = instruction.attributes
        if instruction.opcode not in ("send", "recv") or attributes.get("is_host_transfer") is not True:
            continue
        channel = attributes.get("channel_id")
        if channel is None:
            continue
        reference = first.setdefault(channel, instruction)
        findings.check(
            _alike(reference, instruction),
            "channel",
            f"host transfers on channel {channel} must be alike, {reference.name} is another one",
            instruction,
        )


def _alike(a: Instruction, b: Instruction) -> bool:
    return (
        a.opcode == b.opcode
        and compatible(a.shape, b.shape)
        and len(a.operands) == len(b.operands)
        and all(compatible(x.shape, y.shape) for x, y in zip(a.operands, b.operands))
        and _significant(a.attributes) == _significant(b.attributes)
    )


def _significant(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if name not in _IGNORED}
