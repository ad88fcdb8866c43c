"""At how many points two programs must be compared, for what few elements decide and few integers do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from typing import Final

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.decisions import Decision, Kind, decisions
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.ir.walk import Context, context_of_callees, reachable
from hlotool.numerics import thresholds

#: What looks at the sizes of floats. Where integers decide, all points of a kind decide alike.
_OF_SIZES: Final = frozenset(
    {
        Kind.CLAMPING,
        Kind.COMPARISON,
        Kind.CONVERSION,
        Kind.EXTREMUM,
        Kind.ORDER,
        Kind.SIGN,
        Kind.TIES,
    }
)


def points_for(*modules: Module) -> int:
    """How many points it takes to see what every decision of the programs does (`thresholds.DECISIONS`)."""
    return _for_so_many(thresholds.DECISIONS.value, (size for module in modules for size in _decided(module)))


def points_for_integers(module: Module) -> int:
    """How many points it takes to see what integers and preds in the arguments do (`thresholds.INTEGERS`).

    A number stands for all of a field, an integer only for itself. A single pred is both at any two points.
    """
    shapes = [shape for parameter in module.entry.parameters for shape in array_shapes(parameter.shape)]
    sizes = [shape.size for shape in shapes if _is_sampled(shape)]
    return _for_so_many(thresholds.INTEGERS.value, (size for size in sizes if size > 0))


def _is_sampled(shape: ArrayShape) -> bool:
    if shape.element_type is ElementType.PRED:
        return shape.size > 1
    return not shape.element_type.is_inexact


def _for_so_many(elements: float, sizes: Iterable[int]) -> int:
    """At how many points at least `elements` of each are looked at, as far as `most_points` allows."""
    fewest = min(sizes, default=None)
    return 1 if fewest is None else min(ceil(elements / max(1, fewest)), most_points())


def most_points() -> int:
    """See `thresholds.MOST_POINTS`.

    At other points than those at which programs were unequal, what showed there must not be missed; and
    modulo Q the root of a square has either sign by chance: one element shows it in every second point.
    """
    return int(thresholds.MOST_POINTS.value)


def _decided(module: Module) -> Iterator[int]:
    """The elements of each decision about floats that arguments have a part in; those of reducers apart."""
    calls = CallGraph(module)
    applied = {
        callee
        for instruction in calls.home
        if context_of_callees(instruction) is Context.EMBEDDED
        for called in instruction.called
        for callee in reachable(called)
    }
    for decision in decisions(calls):
        if calls.home[decision.instruction] in applied:
            continue
        if decision.kind in _OF_SIZES and any(map(_is_open, _operands(decision))):
            yield max(o.array_shape.size for o in _operands(decision))


def _operands(decision: Decision) -> list[Instruction]:
    """The floats that decide; those of a conversion from one float type to another do not."""
    result = decision.instruction.shape
    if decision.kind is Kind.CONVERSION and isinstance(result, ArrayShape) and result.element_type.is_inexact:
        return []
    operands = [decision.instruction.operands[number] for number in decision.operands]
    return [o for o in operands if isinstance(o.shape, ArrayShape) and o.shape.element_type.is_floating]


def _is_open(operand: Instruction) -> bool:
    while operand.opcode in opcodes_with(Trait.REGROUPS) | {"convert"}:
        (operand,) = operand.operands
    return operand.opcode != "constant"
