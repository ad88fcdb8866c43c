"""Operations that have kernels of their own, and products of a matrix with few vectors as long reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from hlotool.backends.cuda.codegen.contractions import (
    Contraction,
    DotDimensions,
    convolution_contraction,
    dot_contraction,
    dot_dimensions,
)
from hlotool.backends.cuda.codegen.elements import NotGenerated, array_shape
from hlotool.backends.cuda.codegen.expansion import Graph, Value, spells
from hlotool.backends.cuda.codegen.product_tiles import product
from hlotool.backends.cuda.codegen.scatters import scattered
from hlotool.backends.cuda.codegen.schedules import Kernel, loop
from hlotool.ir.module import Instruction
from hlotool.rewrite.passes.fusion_facts import SERIAL

#: From an instruction, its results and the memory that it may read to its kernels.
Maker = Callable[[Instruction, Sequence[Instruction], Sequence[Instruction]], list[Kernel]]

#: Tiles are worth it for as many rows and columns.
NARROW = 8


def is_long(instruction: Instruction) -> bool:
    """Whether it is too much work to be repeated by everything that reads it."""
    if instruction.opcode == "reduce-window":
        return prod(dim.size for dim in instruction.window.dims) > SERIAL
    if instruction.opcode not in _CONTRACTIONS:
        return True
    return _CONTRACTIONS[instruction.opcode](instruction).length > SERIAL


def multiply_adds(instruction: Instruction) -> int:
    """How many products a dot or a convolution sums; 0 for other operations, and where that is not known."""
    if instruction.opcode not in _CONTRACTIONS:
        return 0
    try:
        return _CONTRACTIONS[instruction.opcode](instruction).length * array_shape(instruction).size
    except NotGenerated:
        return 0


def _contracted(
    instruction: Instruction, parts: Sequence[Instruction], inputs: Sequence[Instruction]
) -> list[Kernel]:
    contraction = _CONTRACTIONS[instruction.opcode](instruction)
    _, rows, columns = contraction.counts
    if min(rows, columns) < NARROW or not array_shape(instruction).size:
        return [loop(parts, inputs)]
    return [product(contraction, inputs)]


_CONTRACTIONS: dict[str, Callable[[Instruction], Contraction]] = {
    "convolution": convolution_contraction,
    "dot": dot_contraction,
    "scaled-dot": dot_contraction,
}


def _looped(
    instruction: Instruction, parts: Sequence[Instruction], inputs: Sequence[Instruction]
) -> list[Kernel]:
    return [loop(parts, inputs)]


#: By opcode.
MAKERS: dict[str, Maker] = {
    **dict.fromkeys(_CONTRACTIONS, _contracted),
    "reduce-window": _looped,
    "scatter": scattered,
    "select-and-scatter": _looped,
    "select-in-windows": _looped,
}


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
