"""Inverse arithmetic on single elements: what an operand must be so that the result is a given number.

A rule gets the operands' numbers at the element as they were and the number that is wanted, and yields
operands by number with what each would have to be, all others staying as they are. Rules are tried, not
believed: a run with the new inputs shows what became of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from hlotool.facts.ranges import FUNCTIONS
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ElementType

#: Operand and number.
Asked: TypeAlias = Iterator[tuple[int, float]]
_Rule: TypeAlias = Callable[[Instruction, Sequence[float], float], Asked]


def inverted(instruction: Instruction, operands: Sequence[float], wanted: float) -> list[tuple[int, float]]:
    """The choices, the plainest first; none where the operation cannot be inverted there."""
    rule = _RULES.get(instruction.opcode)
    if rule is None:
        return []
    try:
        return [(n, v) for n, v in rule(instruction, operands, wanted) if not math.isnan(v)]
    except (ArithmeticError, ValueError):
        return []


def _add(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    yield 0, wanted - o[1]
    yield 1, wanted - o[0]


def _subtract(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    yield 0, wanted + o[1]
    yield 1, o[0] - wanted


def _multiply(instruction: Instruction, o: Sequence[float], wanted: float) -> Asked:
    if instruction.operands[0] is instruction.operands[1]:
        yield 0, math.sqrt(wanted)
        return
    for number, other in ((0, o[1]), (1, o[0])):
        if other:
            yield number, _quotient(instruction, wanted, other)


def _quotient(instruction: Instruction, a: float, b: float) -> float:
    return round(a / b) if instruction.element_type.is_integer else a / b


def _divide(instruction: Instruction, o: Sequence[float], wanted: float) -> Asked:
    yield 0, wanted * o[1]
    if wanted:
        yield 1, _quotient(instruction, o[0], wanted)


def _remainder(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    if abs(wanted) < abs(o[1]):
        whole = o[0] - math.fmod(o[0], o[1])
        yield 0, (whole if whole * wanted > 0 else 0) + wanted


def _extremum(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    """The operand that decided; then the other one."""
    first = 0 if abs(o[0] - wanted) <= abs(o[1] - wanted) else 1
    yield first, wanted
    yield 1 - first, wanted


def _clamp(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    if o[0] <= wanted <= o[2]:
        yield 1, wanted
    yield (0 if wanted > o[1] else 2), wanted


def _select(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    yield (1 if o[0] else 2), wanted


def _convert(instruction: Instruction, o: Sequence[float], wanted: float) -> Asked:
    source = instruction.operands[0].element_type
    if source.is_integer or source is ElementType.PRED:
        yield 0, round(wanted)
    else:
        yield 0, wanted


def _truncated(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    yield 0, wanted


def _power(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    if o[1] and wanted > 0:
        yield 0, wanted ** (1 / o[1])


def _and(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    for number in (0, 1):
        mine, mask = int(o[number]), int(o[1 - number])
        if int(wanted) & ~mask == 0:
            yield number, (mine & ~mask) | int(wanted)


def _or(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    for number in (0, 1):
        if int(o[1 - number]) & ~int(wanted) == 0:
            yield number, int(wanted)


def _xor(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    for number in (0, 1):
        yield number, int(wanted) ^ int(o[1 - number])


def _not(instruction: Instruction, o: Sequence[float], wanted: float) -> Asked:
    yield 0, (1 - wanted if instruction.element_type is ElementType.PRED else ~int(wanted))


def _compare(instruction: Instruction, o: Sequence[float], wanted: float) -> Asked:
    """The first operand beside the second one, or the other way round."""
    direction = instruction.text("direction")
    steps = _STEPS[direction if wanted else _OPPOSITE[direction]]
    for number, sign in ((0, 1), (1, -1)):
        for step in steps:
            other = o[1 - number]
            size = 1.0 if instruction.operands[0].element_type.is_integer else max(1.0, abs(other))
            yield number, other + sign * step * size


_OPPOSITE = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
_STEPS = {"LT": (-1,), "LE": (-1, 0), "GT": (1,), "GE": (1, 0), "EQ": (0,), "NE": (1, -1)}


def _of(function: Callable[[float], float]) -> _Rule:
    def rule(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
        yield 0, function(wanted)

    return rule


def _abs(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    if wanted >= 0:
        yield 0, math.copysign(wanted, o[0])


def _sign(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
    yield 0, wanted * max(1.0, abs(o[0]))


def _shifted(left: bool) -> _Rule:
    def rule(_: Instruction, o: Sequence[float], wanted: float) -> Asked:
        if 0 <= o[1] < 64:
            yield 0, int(wanted) >> int(o[1]) if left else int(wanted) << int(o[1])

    return rule


_RULES: dict[str, _Rule] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "remainder": _remainder,
    **dict.fromkeys(opcodes_with(Trait.EXTREMUM), _extremum),
    "clamp": _clamp,
    "select": _select,
    "convert": _convert,
    **dict.fromkeys(opcodes_with(Trait.TO_INTEGER) | {"reduce-precision"}, _truncated),
    "power": _power,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "compare": _compare,
    "negate": _of(lambda y: -y),
    **{name: _of(function.inverse) for name, function in FUNCTIONS.items() if function.inverse},
    "abs": _abs,
    "sign": _sign,
    "shift-left": _shifted(left=True),
    "shift-right-logical": _shifted(left=False),
    "shift-right-arithmetic": _shifted(left=False),
}
