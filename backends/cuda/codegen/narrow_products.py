"""A matrix times a vector or a few of them, and products of vectors: a long reduction of products.

Tiles would be mostly empty, and one thread by itself would have too long a sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.backends.cuda.codegen.contractions import DotDimensions, dot_contraction, dot_dimensions
from hlotool.backends.cuda.codegen.elements import array_shape
from hlotool.backends.cuda.codegen.expansion import Graph, Value, spells
from hlotool.backends.cuda.codegen.own_kernels import NARROW
from hlotool.ir.module import Instruction
from hlotool.passes.fusion_facts import SERIAL


@spells("dot")
def dot(instruction: Instruction, operands: Sequence[Instruction]) -> Value | None:
    """Products of all pairs of factors, reduced; None for other dots than long and narrow ones."""
    contraction = dot_contraction(instruction)
    _, rows, columns = contraction.counts
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
    graph = Graph(instruction)
    spread = [
        graph.broadcast(graph.convert(operand, kind), _places(side, free, first_kept, first_term), dims)
        for operand, side, free in zip(operands, sides, ([first_kept + d for d in free] for free in places))
    ]
    terms_at = range(first_term, first_term + terms)
    return graph.convert(graph.sum(graph.apply("multiply", *spread), terms_at), result.element_type)


def _ends_with_terms(operand: Instruction, side: DotDimensions) -> bool:
    return array_shape(operand).rank - 1 in side.contracting


def _places(side: DotDimensions, free: Sequence[int], first_batch: int, first_term: int) -> list[int]:
    """Where each dimension of an operand is among all pairs of factors."""
    places = {d: first_batch + i for i, d in enumerate(side.batch)}
    places |= {d: first_term + i for i, d in enumerate(side.contracting)}
    places |= dict(zip(side.free, free))
    return [places[d] for d in range(len(places))]
