"""Where values come from when nothing is computed: through tuples, calls, loops and branches.

A part of a value is an instruction with a shape index. What only hands values on has the parts of other
values: one, where it is always the same; several, where control flow decides (what the body of a loop returns
and what the loop starts with, the branches of a conditional, the arguments of all callers). What computes
something has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from hlotool.analysis.calls import CallGraph
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ShapeIndex
from hlotool.ir.walk import async_start, branches, through_tuple

#: A part of the value of an instruction; the index `()` means all of it.
Part: TypeAlias = "tuple[Instruction, ShapeIndex]"

#: Calls whose result is that of the computation, given the operands as its parameters.
INLINED = opcodes_with(Trait.INLINED)
#: Their value is that of their first operand.
_IDENTITIES = opcodes_with(Trait.FORWARDS)
_HAND_ON = _IDENTITIES | INLINED | opcodes_with(Trait.CONTROL_FLOW, Class.TUPLE) | {"async-done", "parameter"}


def handed_on(part: Part, calls: CallGraph) -> Iterator[Part]:
    """The parts of other values that `part` may have the value of; none where it is computed, or an argument.

    Args:
        part: of an instruction that the entry reaches.
        calls: of the program.
    """
    instruction, index = part
    opcode, operands = instruction.opcode, instruction.operands
    if opcode not in _HAND_ON:
        return
    if (source := through_tuple(instruction, index)) is not None:
        yield source
    elif opcode in _IDENTITIES:
        yield operands[0], index
    elif opcode in INLINED:
        yield next(instruction.called).root, index
    elif opcode == "async-done":
        yield next(async_start(instruction).called).root, index
    elif opcode == "while":
        yield from _state(instruction, index)
    elif opcode == "conditional":
        yield from ((branch.root, index) for branch in branches(instruction))
    elif opcode == "parameter":
        home = calls.home[instruction]
        for caller in calls.callers[home]:
            yield from _arguments(caller, home, instruction.parameter_number or 0, index)


def _arguments(caller: Instruction, callee: Computation, number: int, index: ShapeIndex) -> Iterator[Part]:
    """What a part of parameter `number` of `callee` is when `caller` runs it."""
    if caller.opcode == "while":
        yield from _state(caller, index)
    elif caller.opcode == "conditional":
        for branch, operand in zip(branches(caller), caller.operands[1:]):
            if branch is callee:
                yield operand, index
    elif caller.opcode in INLINED or caller.opcode == "async-start":
        yield caller.operands[number], index


def _state(loop: Instruction, index: ShapeIndex) -> Iterator[Part]:
    """What a part of the state of a loop is: after an iteration, or before the first."""
    yield loop.computation("body").root, index
    yield loop.operands[0], index


def computed_by(
    instruction: Instruction, calls: CallGraph, is_known: Callable[[Part], bool] = lambda _: False
) -> set[Part]:
    """The parts that compute a value, wherever it comes from; entry parameters stand for arguments.

    Args:
        instruction: that the entry reaches.
        calls: of the program.
        is_known: parts that are not followed further.
    """
    found: set[Part] = set()
    seen: set[Part] = set()
    pending: list[Part] = [(instruction, ())]
    while pending:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        before = [] if is_known(part) else list(handed_on(part, calls))
        pending += before
        if not before:
            found.add(part)
    return found
