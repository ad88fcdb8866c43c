"""Instructions whose results are the memory of their operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ShapeIndex, leaves

_Value = TypeVar("_Value")

#: Hand on their first operand as it is.
_SAME = frozenset(
    {
        "add-dependency", "all-reduce-done", "async-update", "bitcast", "domain", "opt-barrier", "recv-done",
        "reshape", "while",
    }
)  # fmt: skip
#: Hand on a part of what was started: its index there.
_FINISHED: Mapping[str, ShapeIndex] = {
    **dict.fromkeys(opcodes_with(Trait.FINISHES) - {"all-reduce-done"}, (1,)),
    "copy-done": (0,),
}
#: Where what was started keeps its operands.
_STARTED: Mapping[str, ShapeIndex] = {
    **dict.fromkeys(opcodes_with(Trait.STARTS) - {"all-reduce-start"} | {"send"}, (0,)),
    "copy-start": (1,),
}
#: What hands on anything at all.
_HANDING_ON = _SAME | _FINISHED.keys() | _STARTED.keys() | opcodes_with(Class.TUPLE) | {"call"}


def handed_on(
    instruction: Instruction, values: Mapping[Instruction, Sequence[_Value]]
) -> dict[ShapeIndex, _Value]:
    """Which leaves of the result are values of operands.

    Args:
        instruction: in question.
        values: of the leaves of each operand, in order.
    """
    return dict(_handed_on(instruction, values)) if instruction.opcode in _HANDING_ON else {}


def _handed_on(
    instruction: Instruction, values: Mapping[Instruction, Sequence[_Value]]
) -> Iterator[tuple[ShapeIndex, _Value]]:
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in _SAME:
        yield from _leaves(operands[0], values)
    elif opcode == "call":
        yield from _through(instruction, values)
    elif opcode == "tuple":
        for number, operand in enumerate(operands):
            yield from _within(operand, values, (number,))
    elif opcode == "get-tuple-element" or opcode in _FINISHED:
        start = (instruction.integer("index"),) if opcode == "get-tuple-element" else _FINISHED[opcode]
        for index, value in _leaves(operands[0], values):
            if index[:1] == start:
                yield index[1:], value
    elif opcode in _STARTED:
        data = operands[:1] if opcode == "send" else operands
        is_listed = len(data) > 1 or opcode == "async-start"
        for number, operand in enumerate(data):
            yield from _within(
                operand, values, (*_STARTED[opcode], number) if is_listed else _STARTED[opcode]
            )


def _through(
    call: Instruction, values: Mapping[Instruction, Sequence[_Value]]
) -> Iterator[tuple[ShapeIndex, _Value]]:
    """What a computation hands on of its arguments: XLA's CPU compiler puts a loop into one of its own."""
    callee = call.computation("to_apply")
    inner: dict[Instruction, Sequence[_Value | None]] = {
        parameter: values[operand] for parameter, operand in zip(callee.parameters, call.operands)
    }
    for instruction in callee.instructions:
        if instruction not in inner:
            handed = handed_on(instruction, inner)
            inner[instruction] = [handed.get(index) for index, _ in leaves(instruction.shape)]
    for index, value in _leaves(callee.root, inner):
        if value is not None:
            yield index, value


def _leaves(
    instruction: Instruction, values: Mapping[Instruction, Sequence[_Value]]
) -> Iterator[tuple[ShapeIndex, _Value]]:
    for (index, _), value in zip(leaves(instruction.shape), values[instruction]):
        yield index, value


def _within(
    operand: Instruction, values: Mapping[Instruction, Sequence[_Value]], place: ShapeIndex
) -> Iterator[tuple[ShapeIndex, _Value]]:
    for index, value in _leaves(operand, values):
        yield (*place, *index), value
