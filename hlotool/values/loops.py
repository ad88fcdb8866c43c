"""Small trip counts: what the condition of a loop compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hlotool.analysis.interval import Interval
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape
from hlotool.values.demands import InRange

#: What parameters that decide about a loop may hold: counters and Collatz sequences end soon.
SMALL_COUNTS: Final = InRange((Interval(1, 16),), required=False)

#: How a condition combines its comparisons.
_LOGIC = frozenset(
    ("and", "or", "not", "reduce", "broadcast", "reshape", "copy", "convert", "get-tuple-element", "select")
)


def loop_demands(loop: Instruction) -> Iterator[tuple[Instruction, InRange]]:
    """Integers that the loop's condition compares, each to be a small positive number."""
    condition = loop.attributes["condition"]
    assert isinstance(condition, Computation)
    for comparison in _comparisons(condition.root):
        for value in comparison.operands:
            if isinstance(value.shape, ArrayShape) and value.shape.element_type.is_integer:
                yield value, SMALL_COUNTS


def _comparisons(predicate: Instruction) -> Iterator[Instruction]:
    if predicate.opcode == "compare":
        yield predicate
    elif predicate.opcode in ("call", "fusion"):
        yield from _comparisons(next(predicate.called).root)
    elif predicate.opcode in _LOGIC:
        for operand in predicate.operands:
            yield from _comparisons(operand)
