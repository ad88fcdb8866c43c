"""Values that a program looks at itself before it uses them: `select(x > 0, x, 1)` is above 0 for every x."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hlotool.analysis.calls import CallGraph
from hlotool.analysis.flow import Part, computed_by, handed_on
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with

#: On the way from a predicate to the comparisons that it is made of.
_LOGIC: Final = opcodes_with(Trait.BITWISE, Trait.REGROUPS) | {"slice"}
#: They keep a number what it is, or at least its sign: what is asked of the result is asked of the operand.
_KEEPS: Final = frozenset(
    {"broadcast", "reshape", "bitcast", "transpose", "copy", "convert", "abs", "negate"}
)
#: Instructions visited for one predicate.
_MOST: Final = 50


def is_guarded(instruction: Instruction, number: int, calls: CallGraph) -> bool:
    """Whether an operand of a select is only taken where a comparison of that same value says so.

    Args:
        instruction: of the program; False for all but selects.
        number: of the operand.
        calls: of the program.
    """
    if instruction.opcode != "select" or number == 0:
        return False
    own = _origins(instruction.operands[number], calls)
    compared = (
        _origins(operand, calls)
        for comparison in _comparisons(instruction.operands[0], calls)
        for operand in comparison.operands
    )
    return any(not own.isdisjoint(origins) for origins in compared)


def _comparisons(predicate: Instruction, calls: CallGraph) -> Iterator[Instruction]:
    """The comparisons that a predicate is made of, in this function or in those that call it."""
    pending: list[Part] = [(predicate, ())]
    seen: set[Part] = set()
    while pending and len(seen) < _MOST:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        if part[0].opcode == "compare":
            yield part[0]
        elif part[0].opcode in _LOGIC:
            pending += [(operand, ()) for operand in part[0].operands]
        else:
            pending += handed_on(part, calls)


def _origins(value: Instruction, calls: CallGraph) -> set[Part]:
    """What a value is, apart from its layout, its type and its sign."""
    found: set[Part] = set()
    pending = list(computed_by(value, calls))
    while pending:
        part = pending.pop()
        if part[0].opcode in _KEEPS:
            pending += computed_by(part[0].operands[0], calls)
        elif part[0].literal is None:
            found.add(part)
    return found
