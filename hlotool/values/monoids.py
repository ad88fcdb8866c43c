"""The identities of reductions, read off their computations."""

from __future__ import annotations

from hlotool.analysis.monoids import monoid_opcodes
from hlotool.analysis.scalar_form import scalar_form
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ElementType
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
    form = scalar_form(reducer)
    if form is None or len(form.outputs) != count:
        return [None] * count
    extremum = _extremum(form.outputs[0]) if count > 1 else None
    if extremum is not None:
        return [extremum, *[Identity.ZERO] * (count - 1)]
    return [None if opcode is None else _IDENTITIES[opcode] for opcode in monoid_opcodes(form)]


def _extremum(value: Instruction) -> Identity | None:
    """`select(accumulated > element, accumulated, element)`, however the comparison treats NaN and ties."""
    if value.opcode != "select" or value.element_type is ElementType.PRED:
        return None
    directions = set(_directions(value.operands[0], depth=4))
    if directions & {"GT", "GE"}:
        return Identity.LOWEST
    return Identity.HIGHEST if directions & {"LT", "LE"} else None


def _directions(predicate: Instruction, depth: int) -> list[str]:
    """Directions of the comparisons of floats or keys that a predicate is made of."""
    if predicate.opcode == "compare":
        return [predicate.text("direction")]
    if depth == 0:
        return []
    return [d for operand in predicate.operands for d in _directions(operand, depth - 1)]
