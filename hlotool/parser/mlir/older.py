"""Operations of earlier dialects, and those of MLIR's own that compute sizes, in instructions of HLO.

XLA: Einsum (hlo/builder/lib/matrix.cc), TorchIndexSelect (hlo/builder/lib/slicing.cc).
StableHLO: docs/spec.md#dynamic_conv; dialect/StablehloOps.td (einsum, torch_index_select).
MLIR: docs/Dialects/TensorOps.md, ShapeDialect.md, ArithOps.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlotool.ir.arrays import dtype_of
from hlotool.ir.attributes import FrontendAttributes, Ints
from hlotool.ir.module import Instruction
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType
from hlotool.parser.mlir.elementwise import filled
from hlotool.parser.mlir.frames import Context, Results, operation
from hlotool.parser.mlir.reductions import applied

_NO_GRADIENT = FrontendAttributes((("grad_x", '"false"'), ("grad_y", '"false"')))


@operation("einsum")
def _einsum(context: Context) -> Results:
    labels = _labels(context)
    given, kept = [context.operand(0), context.operand(1)], list(dict.fromkeys(labels[2]))
    names = [list(labels[0]), list(labels[1])]
    for side in (0, 1):
        given[side], names[side] = _diagonal(context, given[side], names[side])
        other = names[1 - side]
        sizes = dict(zip(other, given[1 - side].dims))
        # What only one side has is summed there, and so is what the other one has another size for:
        # of what the result has, a size of 1.
        summed = [
            number
            for number, (label, size) in enumerate(zip(names[side], given[side].dims))
            if sizes.get(label, -1) != size and (label not in kept or (size == 1 and label in sizes))
        ]
        given[side], names[side] = _summed(context, given[side], names[side], summed)
    left, right = names
    batch = [label for label in left if label in right and label in kept]
    contracted = [label for label in left if label in right and label not in kept]
    free = [label for label in (*left, *right) if label not in (*batch, *contracted)]
    made = [*batch, *free]
    if sorted(made) != sorted(kept):
        raise context.error(f"has a result of dimensions {''.join(kept)}, and a product of {''.join(made)}")
    sizes = dict([*zip(left, given[0].dims), *zip(right, given[1].dims)])
    shape = ArrayShape(context.array.element_type, tuple(sizes[label] for label in made))
    product = context.emit(
        "dot",
        *given,
        shape=shape,
        **{f"lhs_{kind}_dims": tuple(map(left.index, of)) for kind, of in _kinds(batch, contracted)},
        **{f"rhs_{kind}_dims": tuple(map(right.index, of)) for kind, of in _kinds(batch, contracted)},
        frontend_attributes=_NO_GRADIENT,
    )
    order = tuple(map(made.index, kept))
    if len(kept) == len(labels[2]):
        return context.main("transpose", product, dimensions=order)
    shape = ArrayShape(shape.element_type, tuple(sizes[label] for label in kept))
    product = context.emit("transpose", product, shape=shape, dimensions=order)
    # A letter that the result has twice: the elements at equal places, and zeros elsewhere.
    along = tuple(map(labels[2].index, kept))
    whole = context.emit("broadcast", product, dimensions=along)
    twice = [number for number, label in enumerate(labels[2]) if number not in along]
    return _where_equal(context, whole, list(labels[2]), twice)


def _kinds(batch: Sequence[str], contracted: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    return [("batch", batch), ("contracting", contracted)] if batch else [("contracting", contracted)]


def _labels(context: Context) -> tuple[str, str, str]:
    """The letters of both operands and of the result; those for `...` are digits."""
    left, comma, rest = context.text("einsum_config").replace(" ", "").partition(",")
    right, arrow, result = rest.partition("->")
    if not comma or "," in right:
        raise context.error('needs two operands as einsum_config, such as "ij,jk->ik"')
    found = [left, right]
    for number in (0, 1):
        words = found[number].replace("...", "")
        rest_of_rank = len(context.dims(number)) - len(words)
        if "..." in found[number] and 0 <= rest_of_rank <= 10:
            digits = "9876543210"[10 - rest_of_rank :]
            found[number] = found[number].replace("...", digits)
        if len(found[number]) != len(context.dims(number)) or not (words or "a").isalpha():
            raise context.error(f"has {len(context.dims(number))} dimensions, and {words!r} as their letters")
    ellipsis = max(("".join(filter(str.isdigit, one)) for one in found), key=len)
    if not arrow:
        several = found[0] + found[1]
        result = "...".rstrip("." if not ellipsis else "") + "".join(
            sorted(one for one in set(several) if several.count(one) == 1 and not one.isdigit())
        )
    return found[0], found[1], result.replace("...", ellipsis)


def _diagonal(context: Context, given: Instruction, names: list[str]) -> tuple[Instruction, list[str]]:
    """Where a letter stands twice, the elements at equal places, summed over the later of both."""
    twice = [number for number, label in enumerate(names) if names.index(label) != number]
    if not twice:
        return given, names
    return _summed(context, _where_equal(context, given, names, twice), names, twice)


def _where_equal(context: Context, given: Instruction, names: list[str], twice: Sequence[int]) -> Instruction:
    """Zeros where a number differs from that of the dimension that has the same letter."""
    numbered = ArrayShape(ElementType.S32, given.dims)
    truth = ArrayShape(ElementType.PRED, given.dims)
    mask = filled(context, True, truth)
    for number in twice:
        first, second = (
            context.emit("iota", shape=numbered, iota_dimension=one)
            for one in (names.index(names[number]), number)
        )
        equal = context.emit("compare", first, second, shape=truth, direction="EQ")
        mask = context.emit("and", mask, equal, shape=truth)
    zero = filled(context, 0, given.array_shape)
    return context.emit("select", mask, given, zero, shape=given.shape)


def _summed(
    context: Context, given: Instruction, names: list[str], numbers: Sequence[int]
) -> tuple[Instruction, list[str]]:
    if not numbers:
        return given, names
    scalar = ArrayShape(given.element_type, ())
    kept = [number for number in range(len(names)) if number not in numbers]
    shape = ArrayShape(given.element_type, tuple(given.dims[number] for number in kept))
    zero = filled(context, 0, scalar)
    add = applied(context, "stablehlo.add", scalar)
    made = context.emit("reduce", given, zero, shape=shape, dimensions=tuple(numbers), to_apply=add)
    return made, [names[number] for number in kept]


@operation("torch_index_select")
def _torch_index_select(context: Context) -> Results:
    given, index = context.operand(0), context.operand(1)
    dim, batches = context.integer("dim"), context.integer("batch_dims", default=0)
    rank, index_rank = len(given.dims), len(index.dims)
    if not 0 <= batches <= dim < rank or batches > index_rank:
        raise context.error(f"has no dimension {dim} behind {batches} of batches")
    sizes = tuple(1 if number < batches or number == dim else n for number, n in enumerate(given.dims))
    collapsed: Ints = (*range(batches), dim)
    offsets: Ints = tuple(
        number if number < dim else number + index_rank - batches - 1
        for number in range(rank)
        if number not in collapsed
    )
    if batches:
        shape = ArrayShape(index.element_type, (*index.dims, 1))
        parts = [
            *(context.emit("iota", shape=shape, iota_dimension=number) for number in range(batches)),
            context.emit("reshape", index, shape=shape),
        ]
        whole = ArrayShape(index.element_type, (*index.dims, len(parts)))
        index = context.emit("concatenate", *parts, shape=whole, dimensions=(index_rank,))
    return context.main(
        "gather",
        given,
        index,
        offset_dims=offsets,
        collapsed_slice_dims=collapsed,
        start_index_map=collapsed,
        index_vector_dim=index_rank,
        slice_sizes=sizes,
    )


@operation("tensor.cast")
def _tensor_cast(context: Context) -> Results:
    """The operand itself; a size that the text no longer knows after a cast is known here."""
    given = context.operand(0)
    if given.element_type != context.array.element_type or not (
        context.array.admits(given.dims) or given.array_shape.admits(context.array.dims)
    ):
        raise context.error(f"makes {context.array} of {given.shape}")
    return [given]


@operation("tensor.dim")
def _tensor_dim(context: Context) -> Results:
    dims, number = context.dims(0), context.constant(1)
    if number.size != 1 or not 0 <= number < len(dims):
        raise context.error(f"has no such dimension of {len(dims)}")
    return _sizes(context, dims[int(number)])


@operation("shape.shape_of")
def _shape_of(context: Context) -> Results:
    return _sizes(context, *context.dims(0))


@operation("shape.const_shape")
def _const_shape(context: Context) -> Results:
    return _sizes(context, *context.integers("value"))


def _sizes(context: Context, *sizes: int) -> Instruction:
    if UNBOUNDED in sizes:
        raise context.unsupported("a size is known only when the program runs")
    return _listed(context, sizes)


def _listed(context: Context, numbers: Sequence[object]) -> Instruction:
    shape = context.array
    if len(numbers) != shape.size:
        raise context.error(f"has {len(numbers)} numbers for {shape}")
    return context.literal(np.array(numbers, dtype_of(shape.element_type)).reshape(shape.dims), shape)


@operation("tensor.from_elements")
def _from_elements(context: Context) -> Results:
    if all(one.literal is not None and not one.dims for one in context.operands):
        return _listed(context, [context.constant(number) for number in range(len(context.operands))])
    kind = context.array.element_type
    parts = [context.emit("reshape", operand, shape=ArrayShape(kind, (1,))) for operand in context.operands]
    row = context.emit("concatenate", *parts, shape=ArrayShape(kind, (len(parts),)), dimensions=(0,))
    return context.main("reshape", row)


@operation("tensor.splat")
def _splat(context: Context) -> Results:
    return context.main("broadcast", context.operand(0), dimensions=())


@operation("arith.index_cast")
def _index_cast(context: Context) -> Results:
    given, shape = context.operand(0), context.array
    if given.literal is None or given.dims != shape.dims:
        return context.main("convert", given)
    return context.literal(context.constant(0).astype(dtype_of(shape.element_type)), shape)
