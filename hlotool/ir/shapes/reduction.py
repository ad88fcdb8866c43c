"""Shape rules of what combines elements: within an array (reduce, scan, windows) and between devices.

Which devices take part is checked elsewhere; here, what a shard count does to a shape.

XLA: shape_inference.cc (InferReduceShape, InferReduceWindowShape, InferAllGatherShape,
InferReduceScatterShape, InferAllToAllShape, …).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hlotool.ir.attributes import Window, WindowDim
from hlotool.ir.devices import expand_groups
from hlotool.ir.shapes.base import (
    PRED_SCALAR,
    Op,
    Signature,
    array_of,
    check_parameter_count,
    check_reducer,
    check_same_dimensions,
    checks,
    compatible,
    flags_of,
    infers,
    one_or_tuple,
    signature,
    tuple_of,
)
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, Shape, TokenShape, TupleShape


def _inputs_and_inits(op: Op) -> tuple[list[ArrayShape], list[ArrayShape]]:
    """n arrays of one size, then n initial values."""
    op.check(
        len(op.operands) >= 2 and len(op.operands) % 2 == 0,
        "operand-count",
        f"{op.opcode} needs n inputs and n initial values, not {len(op.operands)} operands",
    )
    shapes = op.arrays()
    count = len(shapes) // 2
    check_same_dimensions(op, f"operands of {op.opcode}", shapes[:count])
    return shapes[:count], shapes[count:]


def _checked_reducer(op: Op, inputs: list[ArrayShape], inits: list[ArrayShape]) -> Signature:
    for i, init in enumerate(inits):
        op.check(not init.dims, "scalar-expected", f"initial value {i} must be a scalar, not {init}")
    return check_reducer(op, "to_apply", [s.element_type for s in inits], [s.element_type for s in inputs])


def _results(reducer: Signature, shapes: list[ArrayShape]) -> Shape:
    """The shapes with the reducer's types; a tuple when the reducer returns one."""
    if isinstance(reducer.result, TupleShape):
        types = [e.element_type for e in reducer.result.elements if isinstance(e, ArrayShape)]
        return tuple_of(replace(s, element_type=t) for s, t in zip(shapes, types))
    assert isinstance(reducer.result, ArrayShape)
    return replace(shapes[0], element_type=reducer.result.element_type)


@infers("reduce")
def infer_reduce(op: Op) -> Shape:
    """The dimensions that are not reduced."""
    inputs, inits = _inputs_and_inits(op)
    first = inputs[0]
    reduced = op.dimensions("dimensions", first.rank)
    reducer = _checked_reducer(op, inputs, inits)
    kept = [d for d in range(first.rank) if d not in reduced]
    flags = flags_of(first)
    shape = array_of(first.element_type, (first.dims[d] for d in kept), [flags[d] for d in kept])
    return _results(reducer, [shape] * len(inputs))


def window_of(op: Op, rank: int) -> Window:
    """The `window` attribute; without one nothing happens in any dimension."""
    window = op.window
    op.check_count(len(window.dims), rank, "window must have one entry per dimension")
    return window


def windowed_size(op: Op, size: int, dim: WindowDim) -> int:
    """How often a window fits into a dimension of `size`. XLA: InferWindowOutputShape."""
    for name in ("size", "stride", "base_dilation", "window_dilation"):
        value = getattr(dim, name)
        op.check_value(value > 0, f"window: {name} must be positive, not {value}")
    if size == UNBOUNDED:
        return UNBOUNDED
    padded = dim.pad_low + ((size - 1) * dim.base_dilation + 1 if size else 0) + dim.pad_high
    return (padded - dim.dilated_size) // dim.stride + 1 if padded >= dim.dilated_size else 0


def _windowed(op: Op, shape: ArrayShape) -> ArrayShape:
    dims = [windowed_size(op, n, d) for n, d in zip(shape.dims, window_of(op, shape.rank).dims)]
    return array_of(shape.element_type, dims, shape.dynamic)


@infers("reduce-window")
def infer_reduce_window(op: Op) -> Shape:
    """One result per position of the window."""
    inputs, inits = _inputs_and_inits(op)
    reducer = _checked_reducer(op, inputs, inits)
    shapes = [replace(_windowed(op, s), element_type=i.element_type) for s, i in zip(inputs, inits)]
    return tuple_of(shapes) if isinstance(reducer.result, TupleShape) else shapes[0]


@infers("select-and-scatter")
def infer_select_and_scatter(op: Op) -> Shape:
    """The operand's shape; the source has one element per position of the window."""
    operand, source, init = op.array(0), op.array(1), op.scalar(2, "the initial value")
    select = signature(op.computation("select"))
    element = ArrayShape(operand.element_type, ())
    op.check_callee(
        len(select.parameters) == 2
        and compatible(select.result, PRED_SCALAR)
        and all(compatible(p, element, mixed_precision=True) for p in select.parameters),
        f"select must be ({element}, {element}) -> pred[], not {select}",
    )
    check_reducer(op, "scatter", [init.element_type], [source.element_type])
    expected = _windowed(op, operand)
    op.check_shape(
        compatible(source, expected, mixed_precision=True),
        f"the source must be {expected.logical_text()}, one element per window, not {source.logical_text()}",
    )
    return operand


@infers("sort")
def infer_sort(op: Op) -> Shape:
    """The operands' shapes; `to_apply` compares two elements of each."""
    shapes = op.arrays()
    check_same_dimensions(op, "operands of sort", shapes)
    op.only_dimension(shapes[0].rank)
    compare = signature(op.computation("to_apply"))
    op.check_callee(
        compatible(compare.result, PRED_SCALAR), f"to_apply of sort must return pred[], not {compare.result}"
    )
    check_parameter_count(op, "to_apply", compare, 2 * len(shapes))
    for i, parameter in enumerate(compare.parameters):
        element = ArrayShape(shapes[i // 2].element_type, ())
        op.check_callee(
            compatible(parameter, element, mixed_precision=True),
            f"parameter {i} of to_apply must be {element}, not {parameter}",
        )
    return one_or_tuple(shapes)


@infers("topk")
def infer_topk(op: Op) -> Shape:
    """(values, s32 indices) with `k` of the last dimension."""
    operand, k = op.array(0), op.integer("k")
    op.check_shape(operand.rank > 0, "topk needs an operand of rank 1 or more")
    op.check_value(
        0 <= k <= operand.dims[-1] or operand.dims[-1] == UNBOUNDED,
        f"k must be within [0, {operand.dims[-1]}], not {k}",
    )
    values = array_of(operand.element_type, (*operand.dims[:-1], k), (*flags_of(operand)[:-1], False))
    return tuple_of((values, replace(values, element_type=ElementType.S32)))


@infers("scan")
def infer_scan(op: Op) -> Shape:
    """(stacked outputs…, final carries…): `to_apply` takes a slice of each input, then the carries.

    The scanned dimension is taken off the inputs and put on the outputs. Measured with jaxlib 0.10.
    """
    carries = op.integer("num_carries", 0)
    op.check_value(
        0 <= carries <= len(op.operands), f"num_carries is {carries}, of {len(op.operands)} operands"
    )
    shapes = op.arrays()
    inputs = shapes[: len(shapes) - carries]
    op.check(bool(inputs), "operand-count", "scan needs at least one input")
    dimension = op.only_dimension(inputs[0].rank)
    length = inputs[0].dims[dimension]
    body = signature(op.computation("to_apply"))
    _check_scan_body(op, body, inputs, shapes[len(inputs) :], dimension)
    results = body.result.elements if isinstance(body.result, TupleShape) else (body.result,)
    outputs = [op.as_array(r, "a result of to_apply") for r in results]
    stacked = [_stacked(o, dimension, length) for o in outputs[: len(outputs) - carries]]
    return tuple_of((*stacked, *outputs[len(outputs) - carries :]))


def _check_scan_body(
    op: Op, body: Signature, inputs: list[ArrayShape], carries: list[ArrayShape], dimension: int
) -> None:
    length = inputs[0].dims[dimension]
    expected: list[ArrayShape] = []
    for shape in inputs:
        op.check_shape(
            dimension < shape.rank and shape.dims[dimension] == length,
            f"all inputs must have size {length} in dimension {dimension}: {shape.logical_text()}",
        )
        expected.append(array_of(shape.element_type, (*shape.dims[:dimension], *shape.dims[dimension + 1 :])))
    expected += carries
    op.check_callee(
        len(body.parameters) == len(expected) and all(map(compatible, body.parameters, expected)),
        f"to_apply must take ({', '.join(map(str, expected))}), not {body}",
    )


def _stacked(shape: ArrayShape, dimension: int, length: int) -> ArrayShape:
    return array_of(shape.element_type, (*shape.dims[:dimension], length, *shape.dims[dimension:]))


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
