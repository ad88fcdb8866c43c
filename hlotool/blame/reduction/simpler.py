"""Fewer devices, smaller dimensions, simpler types and simpler values.

Devices: the groups of collectives and the pairs of permutes shrink with them. Of a program on global arrays
all devices go but one, or none: how it is spread is written all over it. All dimensions of one size shrink
together, wherever they appear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from hlotool.blame.reduction.case import Case, for_one_device
from hlotool.blame.reduction.oracle import Candidate, CaseOracle
from hlotool.errors import HlotoolError
from hlotool.facts.retyping import retyped_shape
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.attributes import AttributeValue, ReplicaGroups, SliceDim, Window
from hlotool.ir.devices import (
    ONE_DEVICE,
    DeviceGrid,
    device_groups,
    expand_groups,
    group_mode,
    id_limit,
    source_target_ids,
)
from hlotool.ir.edit import with_attributes
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Instruction
from hlotool.ir.partitioning import for_grid, has_manual_regions
from hlotool.ir.shape_inference import can_infer, infer_shape
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, array_shapes
from hlotool.ir.verifier import verify_or_raise
from hlotool.ir.walk import call_order

#: Sets of devices that are tried at a time.
_MOST = 16


def drop_devices(case: Case, oracle: CaseOracle) -> Case:
    """Run a program for several devices on fewer of them, where the failure stays."""
    while case.module.num_partitions * case.module.replica_count > 1:
        found = oracle.first_failing(list(_candidates(case)), "devices")
        if found is None:
            return case
        case = found[1]
    return case


def _candidates(case: Case) -> Iterator[Candidate]:
    grid = DeviceGrid(case.module.replica_count, case.module.num_partitions)
    if case.copies == 1:
        if not has_manual_regions(case.module):
            yield lambda: case.changed(for_one_device(case.module))
        return
    if min(grid.replicas, grid.partitions) > 1:
        # Neither replicas nor partitions can be left out one by one.
        return
    for kept in list(dict.fromkeys(_sets(case, grid)))[:_MOST]:
        yield partial(on_devices, case, kept)


def _sets(case: Case, grid: DeviceGrid) -> Iterator[tuple[int, ...]]:
    """Sets of devices that may be enough, the smallest first; the device that fails is in most of them."""
    count = len(grid)
    found = {(case.device,), tuple(range(count // 2)), tuple(range(count // 2, count))}
    for instruction in case.module.instructions():
        if "replica_groups" in instruction.attributes:
            found |= {tuple(sorted(group)) for group in device_groups(instruction, grid)}
        pairs = source_target_ids(instruction)
        found |= {tuple(sorted({source, target})) for source, target in pairs} | set(_rings(pairs))
    smaller = (kept for kept in found if 0 < len(kept) < count and max(kept) < count)
    yield from sorted(smaller, key=lambda kept: (len(kept), case.device not in kept, kept))


def _rings(pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """The devices among which a permute moves values."""
    ring = {device: {device} for pair in pairs for device in pair}
    for source, target in pairs:
        joined = ring[source] | ring[target]
        ring.update(dict.fromkeys(joined, joined))
    yield from (tuple(sorted(devices)) for devices in ring.values())


def on_devices(case: Case, kept: Sequence[int]) -> Case | None:
    """The program on some of its devices, which are numbered anew; None where it is no valid one there.

    Args:
        case: a program for each of several replicas, or for each of several partitions.
        kept: numbers of devices.
    """
    numbers = {device: number for number, device in enumerate(kept)}
    grid = DeviceGrid(case.module.replica_count, case.module.num_partitions)
    module = clone_module(case.module).module
    try:
        for instruction in module.instructions():
            changes = _restated(instruction, grid, numbers)
            instruction.attributes = with_attributes(instruction.attributes, sharding=None, **changes)
        smaller = DeviceGrid(len(kept), 1) if grid.replicas > 1 else DeviceGrid(1, len(kept))
        module = for_grid(module, smaller if len(kept) > 1 else ONE_DEVICE)
        verify_or_raise(module)
    except HlotoolError:
        return None
    rows = case.rows
    made = case.with_rows(module, [rows[device] for device in kept])
    made.device = numbers.get(case.device, 0)
    return made


def _restated(
    instruction: Instruction, grid: DeviceGrid, numbers: Mapping[int, int]
) -> dict[str, AttributeValue | None]:
    """The groups and pairs of a collective among the devices that stay."""
    changes: dict[str, AttributeValue | None] = {}
    if not {"replica_groups", "source_target_pairs"} & set(instruction.attributes):
        return changes
    if id_limit(group_mode(instruction), grid) != len(grid):
        # The ids are not those of the devices that are left out.
        return changes
    if ids := expand_groups(instruction.replica_groups):
        groups = [tuple(numbers[i] for i in group if i in numbers) for group in ids]
        changes["replica_groups"] = ReplicaGroups(tuple(filter(None, groups)))
    if pairs := source_target_ids(instruction):
        changes["source_target_pairs"] = tuple(
            (numbers[s], numbers[t]) for s, t in pairs if s in numbers and t in numbers
        )
    return changes


#: Types that may give way to a simpler one.
_SIMPLER = (
    (ElementType.C128, ElementType.C64),
    (ElementType.F64, ElementType.F32),
    (ElementType.BF16, ElementType.F32),
    (ElementType.F16, ElementType.F32),
    (ElementType.S64, ElementType.S32),
    (ElementType.U64, ElementType.U32),
    (ElementType.S16, ElementType.S32),
    (ElementType.S8, ElementType.S32),
    (ElementType.U8, ElementType.U32),
)

#: Magnitude of "small" integers.
_SMALL = 8


def simplify_types(case: Case, oracle: CaseOracle) -> Case:
    """Replace an element type by a more common one everywhere, where the failure stays."""
    for old, new in _SIMPLER:
        found = oracle.first_failing([partial(retyped, case, old, new)], f"{old} as {new}")
        if found is not None:
            case = found[1]
    return case


def retyped(case: Case, old: ElementType, new: ElementType) -> Case | None:
    """The program in another type; None where it has none of the old one, or does not allow the new one."""
    shapes = (shape for i in case.module.instructions() for shape in array_shapes(i.shape))
    if not any(shape.element_type is old for shape in shapes):
        return None

    def retype(instruction: Instruction) -> None:
        instruction.shape = retyped_shape(instruction.shape, lambda kind: new if kind is old else kind)
        if instruction.literal is not None and isinstance(instruction.shape, ArrayShape):
            value = instruction.literal.array.astype(dtype_of(instruction.shape.element_type))
            instruction.literal = Literal(instruction.shape, value)

    return rewritten(case, retype, lambda a: a.astype(dtype_of(new)) if a.dtype == dtype_of(old) else a)


def simplify_values(case: Case, oracle: CaseOracle) -> Case:
    """Make arguments as simple as the failure allows: zeros, ones, counting, small integers, few digits."""
    for number in range(len(case.module.entry.parameters)):
        found = oracle.first_failing(list(_values_candidates(case, number)), f"argument {number}")
        if found is not None:
            case = found[1]
    return case


def _values_candidates(case: Case, number: int) -> Iterator[Candidate]:
    values = [row[number] for row in case.rows]
    if not isinstance(values[0], np.ndarray | np.generic):
        return
    arrays = [np.asarray(value) for value in values]
    for simpler in _SIMPLIFICATIONS:
        made = [simpler(array) for array in arrays]
        if any(one is None for one in made):
            continue
        if all(one.tobytes() == array.tobytes() for one, array in zip(made, arrays)):
            return
        yield partial(_with_argument, case, number, made)


def _with_argument(case: Case, number: int, values: Sequence[Any]) -> Case:
    """The program with another argument on each device."""
    rows = [(*row[:number], value, *row[number + 1 :]) for row, value in zip(case.rows, values)]
    return case.with_rows(case.module, rows)


def _counting(array: Any) -> Any:
    if array.dtype == np.bool_:
        return None
    return (np.arange(array.size) % _SMALL + 1).reshape(array.shape).astype(array.dtype)


def _small_integers(array: Any) -> Any:
    if array.dtype == np.bool_ or array.dtype.kind == "c":
        return None
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        return None
    return np.clip(np.round(wide), -_SMALL, _SMALL).astype(array.dtype)


def _few_digits(array: Any) -> Any:
    if array.dtype.kind in "biuc":
        return None
    wide = array.astype(np.float64)
    return np.round(wide, 1).astype(array.dtype) if np.isfinite(wide).all() else None


#: The simplest first.
_SIMPLIFICATIONS: tuple[Callable[[Any], Any], ...] = (
    np.zeros_like,
    np.ones_like,
    _counting,
    _small_integers,
    _few_digits,
)


# A program whose instructions and arguments all change in the same way: to other sizes, to another type.


def rewritten(
    case: Case, change: Callable[[Instruction], None], change_array: Callable[[Any], Any]
) -> Case | None:
    """A changed copy of a program; None where it is no valid one.

    Args:
        case: the program.
        change: is given every instruction of the copy, callees before callers; raises where it cannot be.
        change_array: what becomes of each array in the arguments.
    """
    module = clone_module(case.module).module
    # What the header says of shapes is no longer so.
    module.attributes = {n: v for n, v in module.attributes.items() if n != "entry_computation_layout"}
    try:
        for computation in call_order(module):
            for instruction in computation.instructions:
                change(instruction)
        verify_or_raise(module)
    except HlotoolError:
        return None
    return case.changed(module, lambda row: [_each_array(argument, change_array) for argument in row])


def _each_array(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_each_array(part, change) for part in value)
    return change(value) if isinstance(value, np.ndarray | np.generic) else value


#: Sizes that are tried for a dimension, the smallest first.
_SIZES = (1, 2, 3, 4, 8, 16)

#: Attributes that speak of sizes of dimensions.
_SIZE_LISTS = ("slice_sizes", "dynamic_slice_sizes")


def shrink_shapes(case: Case, oracle: CaseOracle) -> Case:
    """Shrink one size after the other, the largest first, as far as the failure stays."""
    tried: set[int] = set()
    while untried := sorted(_sizes(case) - tried, reverse=True):
        size = untried[0]
        tried.add(size)
        found = oracle.first_failing(list(_shapes_candidates(case, size)), f"size {size}")
        if found is not None:
            case = found[1]
    return case


def _shapes_candidates(case: Case, size: int) -> Iterator[Candidate]:
    smaller = [s for s in _SIZES if s < size]
    if size // 2 > _SIZES[-1]:
        smaller.append(size // 2)
    for new in smaller:
        yield partial(resized, case, size, new)


def _sizes(case: Case) -> set[int]:
    """Sizes larger than 1 of all dimensions."""
    shapes = (i.shape for i in case.module.instructions())
    return {d for shape in shapes for part in array_shapes(shape) for d in part.dims if d > 1}


def resized(case: Case, old: int, new: int) -> Case | None:
    """The program with dimensions of size `new` instead of `old`; None where that makes no valid program."""
    return rewritten(case, partial(_resize, old=old, new=new), partial(_crop, old=old, new=new))


def _resize(instruction: Instruction, old: int, new: int) -> None:
    instruction.attributes = _resized_attributes(instruction.attributes, old, new)
    instruction.shape = _resized_shape(instruction.shape, old, new)
    if instruction.literal is not None:
        instruction.literal = _resized_literal(instruction.literal, instruction.shape, old, new)
    elif isinstance(instruction.shape, ArrayShape) and can_infer(instruction.opcode):
        operands = [o.shape for o in instruction.operands]
        inferred = infer_shape(instruction.opcode, operands, instruction.attributes)
        if isinstance(inferred, ArrayShape) and inferred.rank == instruction.shape.rank:
            instruction.shape = replace(instruction.shape, dims=inferred.dims)


def _resized_shape(shape: Shape, old: int, new: int) -> Shape:
    if isinstance(shape, ArrayShape):
        return replace(shape, dims=tuple(new if d == old else d for d in shape.dims))
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_resized_shape(element, old, new) for element in shape.elements))
    return shape


def _resized_attributes(
    attributes: Mapping[str, AttributeValue], old: int, new: int
) -> dict[str, AttributeValue]:
    changed = dict(attributes)
    for name, value in attributes.items():
        if name in _SIZE_LISTS and isinstance(value, tuple):
            changed[name] = tuple(new if size == old else size for size in value if isinstance(size, int))
        elif name == "slice" and isinstance(value, tuple):
            changed[name] = tuple(_resized_slice(s, old, new) for s in value if isinstance(s, SliceDim))
        elif isinstance(value, Window):
            dims = tuple(replace(d, size=new if d.size == old else d.size) for d in value.dims)
            changed[name] = Window(dims)
    return changed


def _resized_slice(piece: SliceDim, old: int, new: int) -> SliceDim:
    limit = new if piece.limit == old else piece.limit
    return replace(piece, start=min(piece.start, max(limit - 1, 0)), limit=limit)


def _resized_literal(literal: Literal, shape: Shape, old: int, new: int) -> Literal:
    if not isinstance(shape, ArrayShape) or not isinstance(literal.value, np.ndarray):
        return literal
    return Literal(shape, np.ascontiguousarray(_crop(literal.value, old, new)).reshape(shape.dims))


def _crop(array: Any, old: int, new: int) -> Any:
    """The first `new` elements along every axis of size `old`."""
    return array[tuple(slice(new) if size == old else slice(None) for size in array.shape)]
