"""Between devices. Which devices take part is checked elsewhere; here, what a shard count does to a shape.

XLA: shape_inference.cc (InferAllGatherShape, InferReduceScatterShape, InferAllToAllShape, …).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hlotool.ir.devices import expand_groups
from hlotool.ir.shapes.base import Op, array_of, checks, flags_of, infers, one_or_tuple, tuple_of
from hlotool.ir.shapes.compatibility import compatible
from hlotool.ir.types import UNBOUNDED, ArrayShape, Shape, TokenShape, TupleShape


def _group_size(op: Op) -> int:
    """How many devices share the work, as the replica groups say."""
    try:
        expanded = expand_groups(op.replica_groups)
    except ValueError as error:
        raise op.error("replica-groups", str(error)) from None
    op.check(
        bool(expanded),
        "shape-needed",
        f"the result shape of {op.opcode} must be given without replica groups",
    )
    return len(expanded[0])


def _exchanged(op: Op) -> tuple[list[ArrayShape], list[Shape]]:
    """The shapes of the arrays that are exchanged, and the tokens behind them: PyTorch/XLA has such."""
    count = len(op.operands)
    while count > 1 and isinstance(op.operands[count - 1], TokenShape):
        count -= 1
    op.check(bool(count), "operand-count", f"{op.opcode} needs at least one operand")
    arrays = [op.as_array(shape, f"operand {n}") for n, shape in enumerate(op.operands[:count])]
    return arrays, list(op.operands[count:])


def _scaled(op: Op, shapes: Sequence[ArrayShape], up: int, down: int) -> list[Shape]:
    """Each shape with the size of the collective's dimension times `up` / `down`."""
    return [_scaled_one(op, shape, op.only_dimension(shape.rank), up, down) for shape in shapes]


def _scaled_one(op: Op, shape: ArrayShape, dimension: int, up: int, down: int) -> ArrayShape:
    size = shape.dims[dimension]
    if size != UNBOUNDED:
        op.check_shape(
            size % down == 0, f"dimension {dimension} of size {size} must be divisible among {down} devices"
        )
        size = size * up // down
    dims = (*shape.dims[:dimension], size, *shape.dims[dimension + 1 :])
    flags = flags_of(shape)
    if up > 1:
        flags[dimension] = size == UNBOUNDED
    return replace(array_of(shape.element_type, dims, flags), layout=shape.layout)


def _ratio(op: Op, whole: Shape | None, part: ArrayShape) -> int:
    """How many parts a stated result or operand holds along the collective's dimension."""
    shape = whole.elements[0] if isinstance(whole, TupleShape) and whole.elements else whole
    array = op.as_array(shape, "the result")
    dimension = op.only_dimension(part.rank)
    op.check(dimension < array.rank, "dimension-range", f"the result has no dimension {dimension}")
    return max(1, -(-array.dims[dimension] // max(1, part.dims[dimension])))


def _check_stated(op: Op, expected: Shape) -> None:
    assert op.stated is not None
    op.check_shape(
        compatible(op.stated, expected, op.mixed_precision),
        f"{op.opcode} must give {expected}, not {op.stated}",
    )


@infers("all-gather")
def infer_all_gather(op: Op) -> Shape:
    """The operands, one dimension as many times as large as there are devices in a group."""
    arrays, tokens = _exchanged(op)
    return one_or_tuple([*_scaled(op, arrays, _group_size(op), 1), *tokens])


@checks("all-gather")
def check_all_gather(op: Op) -> None:
    """Any whole number of shards."""
    shapes, tokens = _exchanged(op)
    scaled = _scaled(op, shapes, _ratio(op, op.stated, shapes[0]), 1)
    _check_stated(op, one_or_tuple([*scaled, *tokens]))


@infers("all-gather-start")
def infer_all_gather_start(op: Op) -> Shape:
    """(operands, gathered)."""
    shapes = op.some_arrays()
    return tuple_of((one_or_tuple(shapes), one_or_tuple(_scaled(op, shapes, _group_size(op), 1))))


@checks("all-gather-start")
def check_all_gather_start(op: Op) -> None:
    """(operands, gathered) for any whole number of shards."""
    shapes = op.some_arrays()
    _, result, *_ = op.elements(op.stated, "all-gather-start must give (operands, results)")
    gathered = _scaled(op, shapes, _ratio(op, result, shapes[0]), 1)
    _check_stated(op, tuple_of((one_or_tuple(shapes), one_or_tuple(gathered))))


@infers("all-gather-done", "collective-permute-done")
def infer_done(op: Op) -> Shape:
    """The result part of what was started."""
    return op.elements(op.operands[0], f"the operand of {op.opcode} must be (operands, results, …)")[1]


@infers("all-reduce", "all-reduce-start", "collective-broadcast")
def infer_all_reduce(op: Op) -> Shape:
    """The operands' shapes."""
    arrays, tokens = _exchanged(op)
    return one_or_tuple([*arrays, *tokens])


@infers("all-reduce-done")
def infer_all_reduce_done(op: Op) -> Shape:
    """What was started."""
    return op.operands[0]


@infers("reduce-scatter")
def infer_reduce_scatter(op: Op) -> Shape:
    """The operands, one dimension divided among the devices of a group."""
    arrays, tokens = _exchanged(op)
    return one_or_tuple([*_scaled(op, arrays, 1, _group_size(op)), *tokens])


@checks("reduce-scatter")
def check_reduce_scatter(op: Op) -> None:
    """Any whole number of shards."""
    shapes, tokens = _exchanged(op)
    stated = op.stated.elements[0] if isinstance(op.stated, TupleShape) and op.stated.elements else op.stated
    count = _ratio(op, shapes[0], op.as_array(stated, "the result"))
    _check_stated(op, one_or_tuple([*_scaled(op, shapes, 1, count), *tokens]))


@infers("all-to-all")
def infer_all_to_all(op: Op) -> Shape:
    """With `dimensions` the operand's shape, cut and joined along one; without, a tuple of operands."""
    shapes = op.some_arrays()
    if op.integers("dimensions", ()):
        op.check(len(shapes) == 1, "operand-count", "all-to-all with dimensions takes one operand")
        op.only_dimension(shapes[0].rank)
        return shapes[0]
    for shape in shapes[1:]:
        op.check_shape(
            compatible(shape, shapes[0]),
            f"operands of all-to-all must have one shape: {shapes[0]} and {shape}",
        )
    return tuple_of(shapes)


@infers("ragged-all-to-all")
def infer_ragged_all_to_all(op: Op) -> Shape:
    """The shape of operand 1, into which the pieces are written; four operands say which pieces."""
    op.check(
        len(op.operands) == 6, "operand-count", f"ragged-all-to-all takes 6 operands, not {len(op.operands)}"
    )
    first = op.array(2)
    for i in range(2, 6):
        shape = op.array(i)
        op.check_shape(
            shape.rank in (1, 2) and compatible(shape, first),
            f"operands 2 to 5 must have one shape of rank 1 or 2: {first} and {shape}",
        )
    return op.array(1)


@infers("collective-permute")
def infer_collective_permute(op: Op) -> Shape:
    """The operands' shapes; of the in-place form (with `slice_sizes`) that of the output buffer."""
    if "slice_sizes" in op.attributes:
        return _in_place(op)[1]
    return one_or_tuple(op.some_arrays())


@checks("collective-permute-start")
def check_collective_permute_start(op: Op) -> None:
    """(operands, results, contexts…)."""
    pair = _in_place(op)[:2] if "slice_sizes" in op.attributes else (one_or_tuple(op.some_arrays()),) * 2
    parts = op.elements(op.stated, "collective-permute-start must give (operands, results, contexts…)")
    _check_stated(op, tuple_of((*pair, *parts[2:])))


def _in_place(op: Op) -> Sequence[Shape]:
    """(input, output, input offsets, output offsets)."""
    op.check(
        len(op.operands) == 4,
        "operand-count",
        f"{op.opcode} with slice_sizes takes 4 operands, not {len(op.operands)}",
    )
    return op.operands
