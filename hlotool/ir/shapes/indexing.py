"""Reading and writing at computed positions.

XLA: shape_inference.cc (InferDynamicSliceShape, InferDynamicUpdateSliceShape, InferGatherShape,
InferScatterShape).
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.ir.attributes import Ints
from hlotool.ir.shapes.base import (
    Op,
    array_of,
    array_of_pairs,
    check_reducer,
    check_same_types,
    compatible,
    flags_of,
    infers,
    one_or_tuple,
    same_sizes,
)
from hlotool.ir.types import UNBOUNDED, ArrayShape, Shape


def _check_start_indices(op: Op, rank: int, first: int) -> None:
    """One integer scalar per dimension, all of one type; or, as of old, one vector of them."""
    indices = [op.array(i) for i in range(first, len(op.operands))]
    if len(indices) == 1 and indices[0].rank == 1:
        count = indices[0].dims[0]
    else:
        count = len(indices)
        for index in indices:
            op.check(
                not index.dims and compatible(index, indices[0]),
                "index-operand",
                f"start indices must be scalars of one type, not {index} and {indices[0]}",
            )
    for index in indices:
        op.check(
            index.element_type.is_integer, "index-operand", f"start indices must be integers, not {index}"
        )
    op.check_count(count, rank, f"{op.opcode} needs one start index per dimension", "operand-count")


@infers("dynamic-slice")
def infer_dynamic_slice(op: Op) -> Shape:
    """`dynamic_slice_sizes`, which fit the operand."""
    operand, sizes = op.array(0), op.integers("dynamic_slice_sizes", ())
    _check_start_indices(op, operand.rank, 1)
    _check_slice_sizes(op, "dynamic_slice_sizes", sizes, operand)
    whole = [f and 1 < s == n for f, s, n in zip(flags_of(operand), sizes, operand.dims)]
    return array_of(operand.element_type, sizes, whole)


def _check_slice_sizes(op: Op, name: str, sizes: Ints, operand: ArrayShape) -> None:
    op.check_count(len(sizes), operand.rank, f"{name} must have one size per operand dimension")
    for i, (size, limit) in enumerate(zip(sizes, operand.dims)):
        op.check_value(
            size >= 0 and (limit == UNBOUNDED or size <= limit),
            f"{name}: size {size} of dimension {i} must be within [0, {limit}]",
        )


@infers("dynamic-update-slice")
def infer_dynamic_update_slice(op: Op) -> Shape:
    """The operand's shape; the update fits inside."""
    operand, update = op.array(0), op.array(1, "the update")
    _check_start_indices(op, operand.rank, 2)
    check_same_types(op, (operand, update))
    op.check_shape(
        update.rank == operand.rank
        and all(s == UNBOUNDED or s <= n for s, n in zip(update.dims, operand.dims)),
        f"the update {update.logical_text()} must fit inside the operand {operand.logical_text()}",
    )
    replaced = [f and s == n for f, s, n in zip(flags_of(update), update.dims, operand.dims)]
    if not any(replaced):
        return operand
    flags = [f or r for f, r in zip(flags_of(operand), replaced)]
    return ArrayShape(operand.element_type, operand.dims, tuple(flags), operand.layout)


def _check_sorted(op: Op, name: str, rank: int, what: str) -> Ints:
    """Strictly ascending dimension numbers below `rank`."""
    values = op.dimensions(name, rank, what)
    op.check_value(list(values) == sorted(values), f"{name} must be ascending: {values}")
    return values


def _expanded_indices(op: Op, indices: ArrayShape) -> tuple[int, ArrayShape]:
    """`index_vector_dim`, and the indices with that dimension, of size 1 where it is implied."""
    vector_dim = op.integer("index_vector_dim")
    op.check_value(
        0 <= vector_dim <= indices.rank,
        f"index_vector_dim must be within [0, {indices.rank}], not {vector_dim}",
    )
    op.check_type(indices.element_type.is_integer, f"indices must be integers, not {indices}")
    if vector_dim < indices.rank:
        return vector_dim, indices
    return vector_dim, array_of(indices.element_type, (*indices.dims, 1), (*flags_of(indices), False))


def _check_index_map(op: Op, name: str, rank: int, size: int) -> None:
    """`name` maps the entries of one index vector to dimensions of the operand."""
    values = op.dimensions(name, rank, "the operand")
    op.check_value(
        same_sizes(len(values), size), f"{name} has {len(values)} entries, an index vector has {size}"
    )


def _check_batching(op: Op, operand_name: str, indices_name: str, rank: int, indices: ArrayShape) -> Ints:
    """Pairs of dimensions that operand and indices share."""
    batching = _check_sorted(op, operand_name, rank, "the operand")
    paired = op.dimensions(indices_name, indices.rank, "the indices")
    op.check_value(
        len(batching) == len(paired),
        f"{operand_name} and {indices_name} must have the same length, not {len(batching)} and {len(paired)}",
    )
    return batching


@infers("gather")
def infer_gather(op: Op) -> Shape:
    """Batch dimensions from the indices, window dimensions from `slice_sizes` at `offset_dims`."""
    operand, indices = op.array(0), op.array(1, "the start indices")
    vector_dim, indices = _expanded_indices(op, indices)
    rank = len(op.integers("offset_dims", ())) + indices.rank - 1
    offset_dims = _check_sorted(op, "offset_dims", rank, "the result")
    _check_index_map(op, "start_index_map", operand.rank, indices.dims[vector_dim])
    collapsed = _check_sorted(op, "collapsed_slice_dims", operand.rank, "the operand")
    batching = _check_batching(
        op, "operand_batching_dims", "start_indices_batching_dims", operand.rank, indices
    )
    sizes = op.integers("slice_sizes", ())
    _check_slice_sizes(op, "slice_sizes", sizes, operand)
    hidden = (*collapsed, *batching)
    _check_window_dimensions(op, sizes, len(offset_dims), hidden)
    window = [d for d in range(operand.rank) if d not in hidden]
    return _gathered(operand, indices, vector_dim, offset_dims, [(d, sizes[d]) for d in window])


def _check_window_dimensions(op: Op, sizes: Ints, visible: int, hidden: Sequence[int]) -> None:
    op.check_value(
        len(sizes) == visible + len(hidden),
        f"each of the {len(sizes)} operand dimensions must be in offset_dims ({visible}), or collapsed or "
        f"batched ({len(hidden)})",
    )
    for dimension in hidden:
        op.check_value(
            sizes[dimension] <= 1,
            f"collapsed and batched dimensions must have slice size 0 or 1: dimension {dimension} "
            f"has {sizes[dimension]}",
        )


def _gathered(
    operand: ArrayShape,
    indices: ArrayShape,
    vector_dim: int,
    offset_dims: Ints,
    window: list[tuple[int, int]],
) -> ArrayShape:
    """A window dimension that covers a whole dynamic dimension stays dynamic."""
    batch = iter(
        [(indices.dims[d], indices.is_dynamic_dimension(d)) for d in range(indices.rank) if d != vector_dim]
    )
    covered = iter(
        [(size, size == operand.dims[d] and operand.is_dynamic_dimension(d)) for d, size in window]
    )
    rank = indices.rank - 1 + len(offset_dims)
    dims = [next(covered if d in offset_dims else batch) for d in range(rank)]
    return array_of_pairs(operand.element_type, dims)


@infers("scatter")
def infer_scatter(op: Op) -> Shape:
    """The operands' shapes; operands, one array of indices, as many updates."""
    count = len(op.operands) // 2
    op.check(
        len(op.operands) == 2 * count + 1,
        "operand-count",
        f"scatter needs n operands, the indices and n updates, not {len(op.operands)} in all",
    )
    shapes = op.arrays()
    operands, updates = shapes[:count], shapes[count + 1 :]
    vector_dim, indices = _expanded_indices(op, shapes[count])
    for operand, update in zip(operands, updates):
        _check_scatter_operand(op, operand, indices, update, vector_dim)
    check_reducer(op, "to_apply", [o.element_type for o in operands], [u.element_type for u in updates])
    return one_or_tuple(operands)


def _check_scatter_operand(
    op: Op, operand: ArrayShape, indices: ArrayShape, update: ArrayShape, vector_dim: int
) -> None:
    window_dims = op.integers("update_window_dims", ())
    rank = indices.rank - 1 + len(window_dims)
    op.check_shape(update.rank == rank, f"updates must have rank {rank}, not {update.rank}")
    _check_sorted(op, "update_window_dims", update.rank, "the updates")
    inserted = _check_sorted(op, "inserted_window_dims", operand.rank, "the operand")
    batching = _check_batching(
        op, "input_batching_dims", "scatter_indices_batching_dims", operand.rank, indices
    )
    size = len(window_dims) + len(inserted) + len(batching)
    op.check_value(
        size == operand.rank,
        f"update_window_dims, inserted_window_dims and input_batching_dims must account for all "
        f"{operand.rank} operand dimensions, not {size}",
    )
    _check_index_map(op, "scatter_dims_to_operand_dims", operand.rank, indices.dims[vector_dim])
    _check_update_sizes(op, operand, indices, update, vector_dim)


def _check_update_sizes(
    op: Op, operand: ArrayShape, indices: ArrayShape, update: ArrayShape, vector_dim: int
) -> None:
    window_dims = op.integers("update_window_dims", ())
    hidden = (*op.integers("inserted_window_dims", ()), *op.integers("input_batching_dims", ()))
    limits = [operand.dims[d] for d in range(operand.rank) if d not in hidden]
    for dimension, limit in zip(window_dims, limits):
        op.check_shape(
            limit == UNBOUNDED or update.dims[dimension] <= limit,
            f"dimension {dimension} of the updates has size {update.dims[dimension]}, the operand {limit}",
        )
    batch = [update.dims[d] for d in range(update.rank) if d not in window_dims]
    expected = [n for d, n in enumerate(indices.dims) if d != vector_dim]
    op.check_shape(
        all(map(same_sizes, batch, expected)),
        f"the scatter dimensions of the updates {batch} must be those of the indices {expected}",
    )
