"""Faults that exchange or shift: operands, elements, indices, positions of slices."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hlotool.ir.attributes import Ints, IotaTiles, ReplicaGroups, Sharding
from hlotool.ir.devices import expand_groups, source_target_ids
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.lab.faults.edit import Edit, FaultKind, Fits, Place
from hlotool.lab.faults.parts import INTEGERS, NUMBERS, array_of, both, ints, is_opcode

#: What each reducer is taken for.
_REDUCERS = {"add": "maximum", "maximum": "minimum", "minimum": "maximum", "multiply": "add"}

#: Collectives that go by replica groups.
_GROUPED = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")


def _groups(target: Instruction) -> list[list[int]]:
    return [list(group) for group in expand_groups(target.replica_groups)]


def _set_groups(edit: Edit, groups: Sequence[Sequence[int]]) -> None:
    edit.set_attributes(replica_groups=ReplicaGroups(tuple(map(tuple, groups))))


def _members(edit: Edit, target: Instruction) -> None:
    """A device of one group and one of another change places."""
    groups = _groups(target)
    one, other = edit.rng.choice(len(groups), 2, replace=False)
    first, second = (int(edit.rng.integers(len(groups[n]))) for n in (one, other))
    groups[one][first], groups[other][second] = groups[other][second], groups[one][first]
    _set_groups(edit, groups)


def _has_groups(place: Place) -> bool:
    groups = _groups(place.instruction)
    return len(groups) > 1 and len(groups[0]) > 1


def _halves(edit: Edit, target: Instruction) -> None:
    groups = _groups(target)
    halves = [half for g in groups for half in (g[: len(g) // 2], g[len(g) // 2 :])]
    _set_groups(edit, halves)


def _is_even(place: Place) -> bool:
    groups = _groups(place.instruction)
    return bool(groups) and len(groups[0]) % 2 == 0


def _order(edit: Edit, target: Instruction) -> None:
    _set_groups(edit, [[*group[1:], group[0]] for group in _groups(target)])


def _has_company(place: Place) -> bool:
    groups = _groups(place.instruction)
    return bool(groups) and len(groups[0]) > 1


def _backwards(edit: Edit, target: Instruction) -> None:
    edit.set_attributes(source_target_pairs=tuple(sorted((t, s) for s, t in source_target_ids(target))))


def _is_directed(place: Place) -> bool:
    pairs = set(source_target_ids(place.instruction))
    return pairs != {(t, s) for s, t in pairs}


def _rotated(edit: Edit, target: Instruction) -> None:
    pairs = source_target_ids(target)
    targets = [t for _, t in pairs]
    edit.set_attributes(
        source_target_pairs=tuple((s, t) for (s, _), t in zip(pairs, [*targets[1:], targets[0]]))
    )


def _dropped(edit: Edit, target: Instruction) -> None:
    pairs = source_target_ids(target)
    del pairs[int(edit.rng.integers(len(pairs)))]
    edit.set_attributes(source_target_pairs=tuple(pairs))


def _has_pairs(place: Place) -> bool:
    return len(source_target_ids(place.instruction)) > 1


def _reducer(edit: Edit, target: Instruction) -> None:
    root = target.computation("to_apply").root
    root.opcode = _REDUCERS[root.opcode]


def _has_reducer(place: Place) -> bool:
    root = place.instruction.computation("to_apply").root
    return root.opcode in _REDUCERS and array_of(root).element_type in NUMBERS


def _missing(edit: Edit, target: Instruction) -> None:
    edit.replace(target.operands[0])


def _keeps_shape(place: Place) -> bool:
    [first, *others] = place.instruction.operands
    array = place.array
    return not others and array is not None and array_of(first).dims == array.dims


def _dimension(edit: Edit, target: Instruction) -> None:
    """The parts are put together, or taken apart, along another dimension."""
    shape = array_of(target)
    attributes = dict(target.attributes)
    attributes["dimensions"] = (edit.choose(_other_dimensions(target)),)
    wrong = edit.op(target.opcode, target.operands[0], shape=None, **attributes)
    edit.replace(edit.op("reshape", wrong, shape=shape))


def _other_dimensions(target: Instruction) -> list[int]:
    [own] = ints(target, "dimensions")
    dims = array_of(target.operands[0]).dims
    size = len(_groups(target)[0]) if _groups(target) else 1
    fits = target.opcode == "all-gather"
    return [d for d, n in enumerate(dims) if d != own and n > 1 and (fits or n % size == 0)]


def _has_other_dimension(place: Place) -> bool:
    return place.array is not None and bool(_other_dimensions(place.instruction))


def _blocks(edit: Edit, target: Instruction) -> None:
    """The first two blocks go to each other's device."""
    first, second, *others = target.operands
    edit.set_operands((second, first, *others))


def _has_blocks(place: Place) -> bool:
    return len(set(place.instruction.operands)) > 1


def _partition(edit: Edit, target: Instruction) -> None:
    """Every device takes itself for its neighbour."""
    shape = array_of(target)
    edit.after()
    edit.replace(edit.op("xor", target, edit.constant(1, shape), shape=shape))


def _table(edit: Edit, target: Instruction) -> None:
    """The table of what each device is to do is read from its other end."""
    edit.set_operand(
        0, edit.op("reverse", target.operands[0], shape=target.operands[0].shape, dimensions=(0,))
    )


def _reads_table(place: Place) -> bool:
    table = place.instruction.operands[0]
    return table.opcode == "constant" and isinstance(table.shape, ArrayShape) and table.shape.rank == 1


def _mesh(edit: Edit, target: Instruction) -> None:
    """The axes of the mesh are taken for each other: what a device holds is said to be another's."""
    sharding = target.sharding
    assert sharding is not None
    edit.set_attributes(sharding=replace(sharding, iota=_exchanged(sharding)))


def _exchanged(sharding: Sharding) -> IotaTiles | None:
    """The order of devices with two axes of the mesh exchanged; None where there is but one."""
    iota = sharding.iota
    count = _product(sharding.tile_dims)
    if iota is None or count < 4:
        return None
    if iota.permutation == (1, 0):
        return IotaTiles(iota.dims, (count,), (0,))
    return IotaTiles(iota.dims, (2, count // 2), (1, 0)) if len(iota.reshape_dims) == 1 else None


def _product(sizes: Ints) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _is_spread(place: Place) -> bool:
    sharding = place.instruction.sharding
    return not place.callers and sharding is not None and _exchanged(sharding) is not None


def _collective(*opcodes: str) -> Fits:
    return is_opcode(*opcodes, *(f"{opcode}-start" for opcode in opcodes))


DEVICES = (
    FaultKind(
        "members of groups",
        "replica groups from another mesh axis",
        both(_collective(*_GROUPED), _has_groups),
        _members,
    ),
    FaultKind(
        "halved groups",
        "replica groups of a smaller mesh",
        both(_collective("all-reduce"), _is_even),
        _halves,
    ),
    FaultKind(
        "order in groups",
        "an order of devices that the neighbours do not share",
        both(_collective("all-gather", "reduce-scatter", "all-to-all"), _has_company),
        _order,
    ),
    FaultKind(
        "backwards",
        "source and target confused",
        both(_collective("collective-permute"), _is_directed),
        _backwards,
    ),
    FaultKind(
        "wrong targets",
        "a permutation off by one",
        both(_collective("collective-permute"), _has_pairs),
        _rotated,
    ),
    FaultKind(
        "missing pair", "a device left out", both(_collective("collective-permute"), _has_pairs), _dropped
    ),
    FaultKind(
        "wrong reducer",
        "the reducer of another collective",
        both(_collective("all-reduce", "reduce-scatter"), _has_reducer),
        _reducer,
    ),
    FaultKind(
        "no exchange",
        "a collective removed as redundant",
        both(is_opcode("all-reduce", "collective-permute"), _keeps_shape),
        _missing,
    ),
    FaultKind(
        "other dimension",
        "split dimensions exchanged",
        both(is_opcode("all-gather", "reduce-scatter"), _has_other_dimension),
        _dimension,
    ),
    FaultKind(
        "exchanged blocks", "blocks in another order", both(is_opcode("all-to-all"), _has_blocks), _blocks
    ),
    FaultKind(
        "wrong device", "the id of another device", is_opcode("partition-id", "replica-id"), _partition
    ),
    FaultKind(
        "wrong offset", "offsets of other devices", both(is_opcode("dynamic-slice"), _reads_table), _table
    ),
    FaultKind("mesh axes", "mesh axes exchanged", both(is_opcode("parameter"), _is_spread), _mesh),
)


def _next_index(number: int, edit: Edit, target: Instruction) -> None:
    """All indices plus one; where that is beyond the end, XLA clamps or skips."""
    old = target.operands[number]
    shape = array_of(old)
    edit.set_operand(number, edit.op("add", old, edit.filled(1, shape), shape=shape))


def _gather(edit: Edit, target: Instruction) -> None:
    _next_index(1, edit, target)


def _start(edit: Edit, target: Instruction) -> None:
    first = 1 if target.opcode == "dynamic-slice" else 2
    _next_index(edit.choose(range(first, len(target.operands))), edit, target)


def _has_integer_indices(place: Place) -> bool:
    first = 2 if place.instruction.opcode == "dynamic-update-slice" else 1
    shapes = [o.shape for o in place.instruction.operands[first:]]
    return bool(shapes) and all(isinstance(s, ArrayShape) and s.element_type in INTEGERS for s in shapes)


def _has_gather_indices(place: Place) -> bool:
    shape = array_of(place.instruction.operands[1])
    return shape.size > 0 and shape.element_type in INTEGERS


def _lost_update(edit: Edit, target: Instruction) -> None:
    """One update goes nowhere: its index is out of bounds."""
    old = target.operands[1]
    shape = array_of(old)
    nowhere = edit.filled(_beyond(target), shape)
    mask = edit.element(shape)
    edit.set_operand(1, edit.where(mask, nowhere, old))


def _beyond(target: Instruction) -> int:
    return min(127, 1 + max(array_of(target.operands[0]).dims, default=0))


def _has_updates(place: Place) -> bool:
    shape = array_of(place.instruction.operands[1])
    largest = max(array_of(place.instruction.operands[0]).dims, default=0)
    return len(place.instruction.operands) == 3 and shape.rank > 0 and shape.size > 0 and largest < 126


def _overwrite(edit: Edit, target: Instruction) -> None:
    """The last of several updates of one element wins."""
    parameters = edit.computation.parameters
    edit.set_root(parameters[1])


def _combines(place: Place) -> bool:
    parameters = place.computation.parameters
    return (
        place.callers == {"scatter"} and place.computation.root is place.instruction and len(parameters) == 2
    )


def _indexing_dropped(edit: Edit, target: Instruction) -> None:
    edit.replace(target.operands[0])


def _unclamped(edit: Edit, target: Instruction) -> None:
    edit.replace(target.operands[1])


def _same_shape(place: Place) -> bool:
    return place.instruction.operands[1].shape == place.instruction.shape


def _wrapped(edit: Edit, target: Instruction) -> None:
    """An index beyond the end goes round instead of stopping at the end."""
    number = 1 if target.opcode == "dynamic-slice" else 2
    old = target.operands[number]
    shape = array_of(old)
    size = array_of(target.operands[0]).dims[0]
    read = ints(target, "dynamic_slice_sizes") or array_of(target.operands[1]).dims
    places = size - read[0] + 1
    beyond = edit.op("add", old, edit.filled(places, shape), shape=shape)
    edit.set_operand(number, edit.op("remainder", beyond, edit.filled(places, shape), shape=shape))


def _has_scalar_indices(place: Place) -> bool:
    """One scalar operand per dimension, and a first dimension whose size a small integer holds."""
    dims = array_of(place.instruction.operands[0]).dims
    number = 1 if place.instruction.opcode == "dynamic-slice" else 2
    indices = place.instruction.operands[number:]
    return bool(indices) and array_of(indices[0]).rank == 0 and 0 < dims[0] < 60


INDEXING = (
    FaultKind(
        "gather index off by one",
        "an index that counts from one",
        both(is_opcode("gather"), _has_gather_indices),
        _gather,
    ),
    FaultKind(
        "dynamic slice off by one",
        "an index read before it is incremented",
        both(is_opcode("dynamic-slice", "dynamic-update-slice"), _has_integer_indices),
        _start,
    ),
    FaultKind(
        "lost update of a scatter",
        "two threads that update without an atomic",
        both(is_opcode("scatter"), _has_updates),
        _lost_update,
    ),
    FaultKind("scatter overwrites", "a combining scatter turned into stores", _combines, _overwrite),
    FaultKind(
        "update dropped",
        "an in-place update of a copy that is never read",
        is_opcode("dynamic-update-slice"),
        _indexing_dropped,
    ),
    FaultKind(
        "clamp dropped",
        "a clamp removed by a wrong range analysis",
        both(is_opcode("clamp"), _same_shape),
        _unclamped,
    ),
    FaultKind(
        "index wraps instead of clamping",
        "a negative or large index taken modulo the size",
        both(is_opcode("dynamic-slice", "dynamic-update-slice"), _has_integer_indices, _has_scalar_indices),
        _wrapped,
        poison=97,
    ),
)
