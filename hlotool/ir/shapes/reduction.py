"""Combining elements. XLA: shape_inference.cc (InferReduceShape, InferReduceWindowShape, …)."""

from __future__ import annotations

from dataclasses import replace

from hlotool.ir.attributes import Window, WindowDim
from hlotool.ir.shapes.base import (
    PRED_SCALAR,
    Op,
    Signature,
    array_of,
    check_parameter_count,
    check_reducer,
    check_same_dimensions,
    flags_of,
    infers,
    one_or_tuple,
    signature,
    tuple_of,
)
from hlotool.ir.shapes.compatibility import compatible
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, Shape, TupleShape


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
