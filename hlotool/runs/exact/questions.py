"""What may go one way or another in a program, and the sides that show it: what `sides` watches.

A decision of `facts.decisions` may have more than one question here: a comparison is true or false, and of
equal numbers or not. Others are asked of what is no decision elsewhere: whether a mask cuts bits off, whether
a number that is rounded lies halfway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec.structs import replace

from hlotool.facts.decisions import Decision, Kind, decisions
from hlotool.facts.flow import CallGraph
from hlotool.inputs.coverage.outcomes import Tests, outcome_tests, some
from hlotool.ir.attributes import Window
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ElementType
from hlotool.ir.walk import Context, contexts

#: By the name of each side the outcomes that show it.
Sides: TypeAlias = Mapping[str, frozenset[str]]

_LESS, _EQUAL, _GREATER = frozenset({"less"}), frozenset({"equal"}), frozenset({"greater"})
#: Direction → outcomes by which a comparison is true; the others make it false.
_TRUE: Final = {
    "EQ": _EQUAL,
    "GE": _EQUAL | _GREATER,
    "GT": _GREATER,
    "LE": _EQUAL | _LESS,
    "LT": _LESS,
    "NE": _LESS | _GREATER,
}
#: Sides of each kind by the outcomes that show them, where these are no words for a reader.
_AND: Final = {
    "both": "true",
    "only the first": "true in the first operand alone",
    "only the second": "true in the second operand alone",
}
_OR: Final = {
    "neither": "false",
    "only the first": _AND["only the first"],
    "only the second": _AND["only the second"],
}
#: Kinds whose outcomes are the sides, odd ones and what is ordinary left out.
_BY_OUTCOME: Final = {
    Kind.CLAMPING: ("below", "inside", "above"),
    Kind.EXTREMUM: ("first larger", "second larger"),
    Kind.SIGN: ("negative", "not negative"),
    Kind.SELECTION: ("true", "false"),
    Kind.ALL_OR_ANY: ("all", "none", "mixed"),
    Kind.START_INDEX: ("below", "first", "last", "above"),
    Kind.DIVISION: ("+/+", "-/+", "+/-", "-/-"),
    Kind.SHIFT: ("zero", "in range", "too large"),
    Kind.GROUPS: ("empty", "not empty"),
}
#: Those that look at sizes of floats, which points around other sizes turn round.
_OF_SIZES: Final = frozenset({Kind.CLAMPING, Kind.COMPARISON, Kind.CONVERSION, Kind.EXTREMUM, Kind.SIGN})
#: Integers narrower than this wrap where counters do; wider ones are taken for what does not.
_WIDE: Final = 32
_TIE, _NAN, _CUT, _HALF, _WHOLE = (
    "of equal numbers",
    "of NaN",
    "cutting bits off",
    "halfway",
    "of a whole number",
)
#: Outcomes in words for a reader, after `is never`.
_WORDS: Final = {
    "above": "beyond the end", "below": "before the start", "first": "at the first place",
    "last": "at the last place", "all": "true", "none": "false", "mixed": "of both", "exact": _WHOLE,
    "fraction": "of a fraction", "negative fraction": "of a negative fraction",
    "positive fraction": "of a positive fraction", "wraps": "wrapping",
    "+/+": "of positive numbers", "-/+": "of a negative number by a positive one",
    "+/-": "of a positive number by a negative one", "-/-": "of negative numbers",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One thing that a program asks of its values.

    Attributes:
        decision: that asks it.
        sides: of the answer.
        tests: by outcome.
        of_sizes: sizes of floats decide, and no tie.
        is_open: one side is never settled: what an unstable sort makes of a tie is nowhere written.
        from_result: sees the result, too, and says what occurred.
    """

    decision: Decision
    sides: Sides
    tests: Tests
    of_sizes: bool = False
    is_open: bool = False
    from_result: Callable[[Sequence[Any], Any], Iterator[str]] | None = None


def questions(calls: CallGraph) -> Iterator[Question]:
    """The questions of a program, in textual order."""
    kinds = contexts(calls.module)
    known: dict[Instruction, list[Decision]] = {}
    for decision in decisions(calls):
        known.setdefault(decision.instruction, []).append(decision)
    for instruction, home in calls.home.items():
        if kinds[home] - {Context.EMBEDDED}:
            for decision in known.get(instruction, ()):
                yield from _of_decision(decision)
            yield from _of_instruction(instruction)


def _of_decision(decision: Decision) -> Iterator[Question]:
    instruction = decision.instruction
    kind = instruction.operands[decision.operands[0]].array_type if decision.operands else None
    if kind is None or kind.is_complex:
        return
    if decision.kind is Kind.COMPARISON:
        yield from _of_comparison(decision, kind)
    elif decision.kind in (Kind.ORDER, Kind.TIES):
        yield from _of_ties(decision)
    elif decision.kind is Kind.SELECTION and _is_asked_elsewhere(instruction.operands[0]):
        return
    elif sides := _sides(decision, kind):
        of_sizes = kind.is_floating and decision.kind in _OF_SIZES
        yield Question(decision, sides, outcome_tests(decision), of_sizes)


def _is_asked_elsewhere(pred: Instruction) -> bool:
    """Whether it is what a comparison or the like says, all of it: that is a question of its own."""
    while pred.opcode in opcodes_with(Trait.REGROUPS) | {"not"}:
        (pred,) = pred.operands
    return pred.opcode in ("and", "compare", "is-finite", "or")


def _sides(decision: Decision, kind: ElementType) -> Sides:
    """The sides of a decision that operands show."""
    found: dict[str, frozenset[str]] = {}
    match decision.kind:
        case Kind.LOGIC:
            names = _AND if "both" in decision.outcomes else _OR
            return {name: frozenset({outcome}) for outcome, name in names.items()}
        case Kind.FINITENESS:
            return {"true": frozenset({"finite"}), "false": frozenset({"infinite", "NaN"})}
        case Kind.ALL_OR_ANY if (
            decision.instruction.operands[0].array_shape.size == decision.instruction.array_shape.size
        ):
            return {}  # of one element each, which is asked elsewhere
        case Kind.BRANCH:
            wanted: Sequence[str] = decision.all_outcomes
        case Kind.CONVERSION:
            wanted = [o for o in decision.all_outcomes if o not in ("NaN", "overflow", "fits")]
            if kind is ElementType.PRED or (
                kind.is_integer and "wraps" not in wanted and "zero" not in wanted
            ):
                wanted = ()
        case Kind.OVERFLOW:
            bits = decision.instruction.element_type.bits
            wanted = ("wraps",) if bits < _WIDE and decision.instruction.opcode != "reduce" else ()
        case _:
            wanted = _BY_OUTCOME.get(decision.kind, ())
    found = {
        o if decision.kind is Kind.CLAMPING else _WORDS.get(o, o): frozenset({o})
        for o in wanted
        if o in decision.all_outcomes
    }
    if kind is ElementType.PRED and decision.kind in (Kind.EXTREMUM, Kind.CLAMPING):
        return {}
    return found


def _of_comparison(decision: Decision, kind: ElementType) -> Iterator[Question]:
    instruction, tests = decision.instruction, outcome_tests(decision)
    direction = instruction.text("direction")
    first, second = instruction.operands
    if first is second:
        if kind.is_floating:
            yield Question(replace(decision, kind=Kind.NAN), {_NAN: frozenset({"unordered"})}, tests)
        return
    yes = _TRUE.get(direction, frozenset())
    no = (_LESS | _EQUAL | _GREATER) - yes
    is_order = direction not in ("EQ", "NE")
    if is_order and kind.is_floating:
        # That two floats are equal says nothing of what lies on either side.
        yes, no = yes - _EQUAL, no - _EQUAL
    yield Question(decision, {"true": yes, "false": no}, tests, kind.is_floating)
    if is_order and kind is not ElementType.PRED:
        yield Question(replace(decision, kind=Kind.TIES), {_TIE: _EQUAL}, tests)


def _of_ties(decision: Decision) -> Iterator[Question]:
    """Equal keys of what is sorted, or chosen from."""
    instruction = decision.instruction
    keys = _keys(instruction)
    if instruction.opcode == "sort" and len(keys) == len(instruction.operands):
        return  # nothing tells equal ones apart
    (axis,) = instruction.integers("dimensions") if instruction.opcode == "sort" else (-1,)
    is_open = instruction.opcode == "sort" and not instruction.flag("is_stable")

    def of_neighbours(_: Sequence[Any], value: Any) -> Iterator[str]:
        results = value if isinstance(value, tuple) else (value,)
        rows = [np.moveaxis(np.asarray(results[number]), axis, -1) for number in keys]
        if rows and some(np.logical_and.reduce([r[..., 1:] == r[..., :-1] for r in rows])):
            yield "ties"

    def of_chosen(values: Sequence[Any], value: Any) -> Iterator[str]:
        axes = tuple(instruction.integers("dimensions"))
        chosen = np.expand_dims(np.asarray(value[0]), axes)
        if some(np.count_nonzero(np.asarray(values[0]) == chosen, axis=axes) > 1):
            yield "ties"

    look = of_chosen if decision.kind is Kind.TIES else of_neighbours
    yield Question(decision, {_TIE: frozenset({"ties"})}, {}, is_open=is_open, from_result=look)


def _keys(instruction: Instruction) -> list[int]:
    """The operands of a sort that its comparator looks at."""
    if instruction.opcode != "sort":
        return [0]
    comparator = instruction.computation("to_apply")
    read = {operand for inner in comparator.instructions for operand in inner.operands}
    return sorted(
        {(p.parameter_number or 0) // 2 for p in comparator.parameters if p in read or p is comparator.root}
    )


def _of_instruction(instruction: Instruction) -> Iterator[Question]:
    """What is asked of instructions that decide nothing by themselves."""
    kind = instruction.array_type
    match instruction.opcode:
        case "and" if kind is not None and kind.is_integer:
            yield from _of_masks(instruction)
        case "sign" if kind is not None and not kind.is_complex:
            decision = Decision(instruction, Kind.TIES, (_TIE,), operands=(0,))
            yield Question(decision, {_TIE: frozenset({_TIE})}, {_TIE: lambda v: some(v[0] == 0)})
        case "round-nearest-even" | "round-nearest-afz":
            yield _of_fraction(instruction, _HALF, lambda x: np.abs(x - np.trunc(x)) == 0.5)
        case "floor" | "ceil":
            yield _of_fraction(instruction, _WHOLE, lambda x: x == np.trunc(x))
        case "select-and-scatter":
            yield _of_windows(instruction)


def _of_masks(instruction: Instruction) -> Iterator[Question]:
    """Whether an `and` with a constant takes bits away."""
    masks = [number for number, operand in enumerate(instruction.operands) if _is_constant(operand)]
    if len(masks) != 1:
        return
    (mask,) = masks
    decision = Decision(instruction, Kind.OVERFLOW, (_CUT,), operands=(0, 1))
    tests: Tests = {_CUT: lambda v: some((v[0] & v[1]) != v[1 - mask])}
    yield Question(decision, {_CUT: frozenset({_CUT})}, tests)


def _is_constant(operand: Instruction) -> bool:
    while operand.opcode in opcodes_with(Trait.REGROUPS) | {"convert"}:
        (operand,) = operand.operands
    return operand.opcode == "constant"


def _of_fraction(instruction: Instruction, name: str, holds: Callable[[Any], Any]) -> Question:
    decision = Decision(instruction, Kind.CONVERSION, (name,), operands=(0,))
    return Question(decision, {name: frozenset({name})}, {name: lambda v: some(holds(np.asarray(v[0])))})


def _of_windows(instruction: Instruction) -> Question:
    """Whether neighbours in a window are equal: which one gets what is scattered?"""
    window = instruction.attributes["window"]
    assert isinstance(window, Window)
    axes = [axis for axis, dim in enumerate(window.dims) if dim.size > 1]

    def tied(values: Sequence[Any]) -> bool:
        x = np.asarray(values[0])
        return any(some(np.diff(x, axis=axis) == 0) for axis in axes)

    decision = Decision(instruction, Kind.TIES, (_TIE,), operands=(0,))
    return Question(decision, {_TIE: frozenset({_TIE})}, {_TIE: tied})
