"""Large dots as products of stacks of matrices, as BLAS libraries take them: strides, transpositions.

XLA: operation_semantics.md#dotgeneral; gemm_rewriter.cc and matmul_utils.cc do the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from hlotool.backends.cuda.codegen.contractions import DotDimensions, dot_dimensions
from hlotool.backends.cuda.codegen.elements import NotGenerated, element_type
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Multiplications from which on a library is called: a product of two matrices of 128 x 128.
LARGE = 1 << 21

#: Types of both operands and of the result that products keep exact up to the rounding of sums in f32 (f64).
_KINDS: dict[ElementType, frozenset[ElementType]] = {
    ElementType.BF16: frozenset({ElementType.BF16, ElementType.F32}),
    ElementType.F16: frozenset({ElementType.F16, ElementType.F32}),
    ElementType.F32: frozenset({ElementType.F32}),
    ElementType.F64: frozenset({ElementType.F64}),
    ElementType.C64: frozenset({ElementType.C64}),
    ElementType.C128: frozenset({ElementType.C128}),
}


@dataclass(frozen=True, slots=True)
class Stack:
    """Matrices in memory, one behind the other; strides count elements.

    Attributes:
        order: dimensions of the operand, to be brought into this order first; None if it is used as it lies.
        stride: from one matrix to the next.
        leading: from one row to the next, or where they are transposed, from one column to the next.
        is_transposed: columns, not rows, are contiguous.
    """

    order: tuple[int, ...] | None
    stride: int
    leading: int
    is_transposed: bool


@dataclass(frozen=True, slots=True)
class Product:
    """batch x (rows x length) times batch x (length x columns), row-major.

    Attributes:
        batch: number of matrices.
        rows: of the left matrices and of the result.
        columns: of the right matrices and of the result.
        length: number of terms of each sum.
        left: the left matrices.
        right: the right matrices.
        operands: element type of both.
        result: element type of the result.
    """

    batch: int
    rows: int
    columns: int
    length: int
    left: Stack
    right: Stack
    operands: ElementType
    result: ElementType


def product_of(instruction: Instruction, least: int = LARGE) -> Product | None:
    """A dot as a product.

    None where it is none, or of fewer than `least` multiplications, or of types that libraries do not know.
    """
    if instruction.opcode != "dot" or len(instruction.operands) != 2:
        return None
    try:
        result, *kinds = (element_type(i) for i in (instruction, *instruction.operands))
        sides = [dot_dimensions(instruction, number) for number in (0, 1)]
    except NotGenerated:
        return None
    if kinds[0] is not kinds[1] or result not in _KINDS.get(kinds[0], ()):
        return None
    if len(sides[0].batch) != len(sides[1].batch):
        return None
    left, right = (operand.dims for operand in instruction.operands)
    batch, rows = (prod(left[d] for d in group) for group in (sides[0].batch, sides[0].free))
    length, columns = prod(left[d] for d in sides[0].contracting), prod(right[d] for d in sides[1].free)
    if batch * rows * columns * length < max(least, 1):
        return None
    stacks = min(_arrangements(left, right, sides), key=lambda pair: sum(s.order is not None for s in pair))
    return Product(batch, rows, columns, length, *stacks, kinds[0], result)


def _arrangements(
    left: Sequence[int], right: Sequence[int], sides: Sequence[DotDimensions]
) -> list[tuple[Stack, Stack]]:
    """Both operands with the summed dimensions in the order of the one, and of the other."""
    pairs = list(zip(sides[0].contracting, sides[1].contracting))
    found = []
    for side in (0, 1):
        ordered = sorted(pairs, key=lambda pair: pair[side])
        first, second = [a for a, _ in ordered], [b for _, b in ordered]
        lhs = _stack(left, sides[0].batch, sides[0].free, first)
        found.append((lhs, _stack(right, sides[1].batch, second, sides[1].free)))
    return found


def _stack(dims: Sequence[int], batch: Sequence[int], outer: Sequence[int], inner: Sequence[int]) -> Stack:
    """An array as matrices whose rows are the outer dimensions and whose columns are the inner ones."""
    height, width = (prod(dims[d] for d in group) for group in (outer, inner))
    strides = [_stride(dims, group) for group in (batch, outer, inner)]
    if None not in strides:
        stack, row, column = (stride or 0 for stride in strides)
        if (column == 1 or width == 1) and (row >= width or height == 1):
            return Stack(None, stack, max(row, width), False)
        if (row == 1 or height == 1) and (column >= height or width == 1):
            return Stack(None, stack, max(column, height), True)
    return Stack((*batch, *outer, *inner), height * width, width, False)


def _stride(dims: Sequence[int], group: Sequence[int]) -> int | None:
    """Elements between neighbours of dimensions that act as one; None where they cannot, 0 where it is 1."""
    places = [d for d in group if dims[d] != 1]
    if not places:
        return 0
    if any(b < a or prod(dims[a + 1 : b]) != 1 for a, b in pairwise(places)):
        return None
    return prod(dims[places[-1] + 1 :])
