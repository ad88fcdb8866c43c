"""Moving elements without computing. XLA: shape_inference.cc and hlo_verifier.cc, the Handle functions."""

from __future__ import annotations

from functools import reduce

from msgspec.structs import replace

from hlotool.ir.attributes import PaddingDim, SliceDim
from hlotool.ir.shapes.base import (
    U32_SCALAR,
    Op,
    array_of,
    array_of_pairs,
    check_same_types,
    checks,
    compatible,
    flags_of,
    higher_precision,
    infers,
    same_sizes,
    same_type,
    tuple_of,
)
from hlotool.ir.types import UNBOUNDED, ArrayShape, Layout, Shape


@infers("copy", "domain", "opt-barrier")
def infer_same(op: Op) -> Shape:
    """The operand's shape, whatever it is."""
    return op.operands[0]


@infers("copy-start")
def infer_copy_start(op: Op) -> Shape:
    """(destination, source, context)."""
    return tuple_of((op.operands[0], op.operands[0], U32_SCALAR))


@infers("copy-done")
def infer_copy_done(op: Op) -> Shape:
    """The destination, which must look like the source."""
    demand = "the operand of copy-done must be (destination, source, context)"
    destination, source, *_ = op.elements(op.operands[0], demand)
    op.check_shape(
        compatible(destination, source),
        f"destination and source of a copy must have one shape: {destination} and {source}",
    )
    return destination


@checks("broadcast")
def check_broadcast(op: Op) -> None:
    """`dimensions` says which result dimension each operand dimension becomes; sizes stay."""
    operand, result = op.array(0), op.stated_array()
    _check_element_type(op, operand, result)
    dimensions = op.dimensions("dimensions", result.rank, "the result")
    op.check_count(len(dimensions), operand.rank, "dimensions must have one entry per operand dimension")
    for i, target in enumerate(dimensions):
        op.check_shape(
            operand.dims[i] == result.dims[target],
            f"operand dimension {i} of size {operand.dims[i]} cannot become result dimension {target} "
            f"of size {result.dims[target]}",
        )


@checks("reshape")
def check_reshape(op: Op) -> None:
    """Same element type up to floating-point precision, same number of elements."""
    operand, result = op.array(0), op.stated_array()
    _check_element_type(op, operand, result)
    _check_element_count(op, operand, result)


@checks("dynamic-reshape")
def check_dynamic_reshape(op: Op) -> None:
    """Same number of elements at the bounds, and one s32 size per result dimension."""
    operand, result = op.array(0), op.stated_array()
    _check_element_type(op, operand, result)
    _check_element_count(op, operand, result)
    demand = "dynamic-reshape needs one size per result dimension"
    op.check_count(len(op.operands) - 1, result.rank, demand, "operand-count")
    for i in range(1, len(op.operands)):
        size = op.array(i)
        op.check_type(str(size.element_type) == "s32", f"size {i - 1} must be s32, not {size}")


def _check_element_type(op: Op, operand: ArrayShape, result: ArrayShape) -> None:
    """Types may differ in floating-point precision: compilers that allow a mixed one convert on the way."""
    op.check_type(
        same_type(operand.element_type, result.element_type, op.mixed_precision),
        f"{op.opcode} keeps the element type {operand.element_type}, it cannot give {result.element_type}",
    )


def _check_element_count(op: Op, operand: ArrayShape, result: ArrayShape) -> None:
    op.check_shape(
        UNBOUNDED in (*operand.dims, *result.dims) or operand.size == result.size,
        f"{op.opcode} keeps the number of elements: {operand.logical_text()} has {operand.size}, "
        f"{result.logical_text()} has {result.size}",
    )


@checks("convert")
def check_convert(op: Op) -> None:
    """Another element type, the same dimensions."""
    operand, result = op.array(0), op.stated_array()
    op.check_shape(
        compatible(operand, result, any_type=True),
        f"convert keeps the dimensions of {operand.logical_text()}, it cannot give {result.logical_text()}",
    )


@checks("bitcast-convert")
def check_bitcast_convert(op: Op) -> None:
    """Types of other widths add or remove a last dimension that holds the ratio."""
    operand, result = op.array(0), op.stated_array()
    old, new = operand.element_type, result.element_type
    op.check_type(old.is_complex == new.is_complex, f"{old} and {new}: complex and real types do not mix")
    wide, narrow = max(old.bits, new.bits), min(old.bits, new.bits)
    op.check_type(wide % narrow == 0, f"the width of {old} and {new} must divide one another")
    dims = operand.dims
    if old.bits > new.bits:
        dims = (*dims, wide // narrow)
    elif old.bits < new.bits:
        op.check_shape(
            bool(dims) and dims[-1] == wide // narrow,
            f"to read {operand.logical_text()} as {new}, its last dimension must be {wide // narrow}",
        )
        dims = dims[:-1]
    expected = ArrayShape(new, dims)
    op.check_shape(
        compatible(expected, result), f"bitcast-convert must give {expected}, not {result.logical_text()}"
    )


@infers("transpose")
def infer_transpose(op: Op) -> Shape:
    """Result dimension i is operand dimension `dimensions[i]`; the layout moves along."""
    operand = op.array(0)
    dimensions = op.integers("dimensions", ())
    op.check_value(
        sorted(dimensions) == list(range(operand.rank)),
        f"dimensions must be a permutation of the operand's {operand.rank}, not {dimensions}",
    )
    flags = flags_of(operand)
    shape = array_of(
        operand.element_type, (operand.dims[d] for d in dimensions), [flags[d] for d in dimensions]
    )
    return replace(shape, layout=_permuted_layout(operand, dimensions))


def _permuted_layout(operand: ArrayShape, dimensions: tuple[int, ...]) -> Layout | None:
    """The layout under which the transpose moves nothing; none where the operand's orders no dimensions."""
    layout = operand.layout_or_default
    if sorted(layout.minor_to_major) != list(range(operand.rank)):
        return None  # the verifier says so of the operand itself
    moved = replace(layout, minor_to_major=tuple(map(dimensions.index, layout.minor_to_major)))
    return None if operand.layout is None and moved.is_descending else moved


@infers("reverse")
def infer_reverse(op: Op) -> Shape:
    """The operand's shape."""
    operand = op.array(0)
    op.dimensions("dimensions", operand.rank)
    return operand


@infers("slice")
def infer_slice(op: Op) -> Shape:
    """One [start:limit:stride] per dimension, inside the operand."""
    operand = op.array(0)
    dims = op.listed("slice", SliceDim, ())
    op.check_count(len(dims), operand.rank, "slice must have one range per dimension")
    sizes = [_sliced(op, i, d, operand.dims[i]) for i, d in enumerate(dims)]
    bounded = (f and n != UNBOUNDED and s != 1 for f, n, s in zip(flags_of(operand), operand.dims, sizes))
    return array_of(operand.element_type, sizes, list(bounded))


def _sliced(op: Op, dimension: int, part: SliceDim, size: int) -> int:
    op.check_value(
        0 <= part.start <= part.limit and (size == UNBOUNDED or part.limit <= size),
        f"slice of dimension {dimension} must satisfy 0 <= start <= limit <= {size}: "
        f"[{part.start}:{part.limit}]",
    )
    op.check_value(part.stride > 0, f"stride of dimension {dimension} must be positive")
    return -((part.start - part.limit) // part.stride)


@infers("pad")
def infer_pad(op: Op) -> Shape:
    """low + size + high + (size - 1) * interior per dimension."""
    operand, value = op.array(0), op.scalar(1, "the padding value")
    check_same_types(op, (operand, value))
    dims = op.listed("padding", PaddingDim, ())
    op.check_count(len(dims), operand.rank, "padding must have one entry per dimension")
    sizes = [_padded(op, i, d, operand.dims[i]) for i, d in enumerate(dims)]
    element_type = higher_precision(operand.element_type, value.element_type)
    return array_of(element_type, sizes, operand.dynamic)


def _padded(op: Op, dimension: int, padding: PaddingDim, size: int) -> int:
    op.check_value(
        padding.interior >= 0,
        f"interior padding of dimension {dimension} must not be negative: {padding.interior}",
    )
    if size == UNBOUNDED:
        return size
    padded = padding.low + size + padding.high + max(size - 1, 0) * padding.interior
    op.check_value(padded >= 0, f"padding gives dimension {dimension} the negative size {padded}")
    return padded


@infers("concatenate")
def infer_concatenate(op: Op) -> Shape:
    """Sizes add up along one dimension and must agree in the others."""
    shapes = op.some_arrays()
    check_same_types(op, shapes)
    first = shapes[0]
    dimension = op.only_dimension(first.rank)
    for shape in shapes[1:]:
        op.check_shape(
            shape.rank == first.rank
            and all(d == dimension or same_sizes(*n) for d, n in enumerate(zip(first.dims, shape.dims))),
            f"operands of concatenate may differ only in dimension {dimension}: "
            f"{first.logical_text()} and {shape.logical_text()}",
        )
    element_type = reduce(higher_precision, (s.element_type for s in shapes))
    dims = [_joined(op, shapes, d, d == dimension) for d in range(first.rank)]
    return array_of_pairs(element_type, dims)


def _joined(op: Op, shapes: list[ArrayShape], dimension: int, added: bool) -> tuple[int, bool]:
    """Size and flag of one result dimension: the sum, or the most specific of sizes that agree."""
    sizes = [s.dims[dimension] for s in shapes]
    known = [size for size in sizes if size != UNBOUNDED]
    flags = [s.is_dynamic_dimension(dimension) for s in shapes]
    if added:
        return (UNBOUNDED, True) if len(known) < len(sizes) else (sum(sizes), any(flags))
    bounds = {size for size, flag in zip(sizes, flags) if flag and size != UNBOUNDED}
    op.check_shape(len({*known, *bounds}) <= 1, f"sizes of dimension {dimension} differ: {sizes}")
    return (known[0], bool(bounds)) if known else (UNBOUNDED, True)
