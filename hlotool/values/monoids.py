"""The identities of reductions, read off their computations."""

from __future__ import annotations

from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.values.demands import Identity

_IDENTITIES = {
    "add": Identity.ZERO,
    "or": Identity.ZERO,
    "xor": Identity.ZERO,
    "multiply": Identity.ONE,
    "and": Identity.ALL_BITS,
    "maximum": Identity.LOWEST,
    "minimum": Identity.HIGHEST,
}


def identities(reducer: Computation, count: int) -> list[Identity | None]:
    """The identity of each of `count` reductions done together; None where it is not recognised.

    Recognised are the elementwise monoids, alone or side by side, and the pair that finds an extremum and its
    position, where the position starts at 0.
    """
    root = reducer.root
    if count == 1:
        return [_identity(root)]
    if root.opcode != "tuple":
        return [None] * count
    found = [_identity(element) for element in root.operands]
    extremum = _extremum(root.operands[0])
    return found if extremum is None else [extremum, *[Identity.ZERO] * (count - 1)]


def _identity(instruction: Instruction) -> Identity | None:
    if instruction.opcode == "convert":
        return _identity(instruction.operands[0])
    return _IDENTITIES.get(instruction.opcode) if _combines_parameters(instruction) else None


def _combines_parameters(instruction: Instruction) -> bool:
    sources = [o.operands[0] if o.opcode == "convert" else o for o in instruction.operands]
    return all(source.opcode == "parameter" for source in sources)


def _extremum(value: Instruction) -> Identity | None:
    """`select(accumulated > element, accumulated, element)`, however the comparison treats NaN and ties."""
    if value.opcode != "select" or not _is_number(value):
        return None
    directions = set(_directions(value.operands[0], depth=4))
    if directions & {"GT", "GE"}:
        return Identity.LOWEST
    return Identity.HIGHEST if directions & {"LT", "LE"} else None


def _is_number(value: Instruction) -> bool:
    return isinstance(value.shape, ArrayShape) and value.shape.element_type is not ElementType.PRED


def _directions(predicate: Instruction, depth: int) -> list[str]:
    """Directions of the comparisons of floats or keys that a predicate is made of."""
    if predicate.opcode == "compare":
        return [predicate.text("direction")]
    if depth == 0:
        return []
    return [d for operand in predicate.operands for d in _directions(operand, depth - 1)]
