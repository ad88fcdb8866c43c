"""A matrix times a vector or a few of them, and products of vectors: a long reduction of products.

Tiles would be mostly empty, and one thread by itself would have too long a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hlotool.backends.cuda.codegen.contractions import DotDimensions, dot_contraction, dot_dimensions
from hlotool.backends.cuda.codegen.elements import array_shape, element_type
from hlotool.backends.cuda.codegen.expansion import Value, spells
from hlotool.backends.cuda.codegen.own_kernels import NARROW, SERIAL
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.literal import Literal
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType


@spells("dot")
def dot(instruction: Instruction, operands: Sequence[Instruction]) -> Value | None:
    """Products of all pairs of factors, reduced; None for other dots than long and narrow ones."""
    contraction = dot_contraction(instruction)
    rows, columns = (prod(contraction.sizes(d)) for d in (contraction.rows, contraction.columns))
    if contraction.length <= SERIAL or min(rows, columns) >= NARROW:
        return None
    kind, result = contraction.kind, array_shape(instruction)
    terms = len(contraction.terms)
    places = (contraction.rows, contraction.columns)
    sides = [dot_dimensions(instruction, n) for n in (0, 1)]
    by_row = _ends_with_terms(operands[rows < columns], sides[rows < columns])
    # Neighbours in memory are to be neighbours in the reduction.
    first_term, first_kept = (result.rank, 0) if by_row else (0, terms)
    dims = (*result.dims, *contraction.terms) if by_row else (*contraction.terms, *result.dims)
    whole = ArrayShape(kind, dims)
    spread = [
        _spread(operand, side, [first_kept + d for d in free], first_kept, first_term, whole)
        for operand, side, free in zip(operands, sides, places)
    ]
    name = instruction.name
    product = Instruction(f"{name}.products", "multiply", whole, tuple(spread), line=instruction.line)
    scalar = ArrayShape(kind, ())
    zero = Literal(scalar, np.zeros((), dtype_of(kind)))
    start = Instruction(f"{name}.zero", "constant", scalar, literal=zero, line=instruction.line)
    attributes = {"dimensions": tuple(range(first_term, first_term + terms)), "to_apply": sum_of(kind)}
    total = ArrayShape(kind, result.dims)
    summed = Instruction(f"{name}.sum", "reduce", total, (product, start), attributes, line=instruction.line)
    return as_type(summed, result.element_type)


def _ends_with_terms(operand: Instruction, side: DotDimensions) -> bool:
    return array_shape(operand).rank - 1 in side.contracting


def _spread(
    operand: Instruction,
    side: DotDimensions,
    free: Sequence[int],
    first_batch: int,
    first_term: int,
    whole: ArrayShape,
) -> Instruction:
    """An operand over all pairs of factors."""
    places = {d: first_batch + i for i, d in enumerate(side.batch)}
    places |= {d: first_term + i for i, d in enumerate(side.contracting)}
    places |= dict(zip(side.free, free))
    dimensions = {"dimensions": tuple(places[d] for d in range(len(places)))}
    wide = as_type(operand, whole.element_type)
    return Instruction(f"{operand.name}.spread", "broadcast", whole, (wide,), dimensions, line=operand.line)


def as_type(value: Instruction, kind: ElementType) -> Instruction:
    """`value` converted to an element type, if it is of another one."""
    if element_type(value) is kind:
        return value
    shape = ArrayShape(kind, array_shape(value).dims)
    return Instruction(f"{value.name}.as.{kind}", "convert", shape, (value,), line=value.line)


def sum_of(kind: ElementType) -> Computation:
    """The computation that adds two scalars."""
    scalar = ArrayShape(kind, ())
    a, b = (Instruction(name, "parameter", scalar, parameter_number=n) for n, name in enumerate("ab"))
    root = Instruction("sum", "add", scalar, (a, b))
    return Computation(f"add.{kind}", [a, b, root], root)
