"""Where a program does one thing or another, depending on its data, and what may come of each.

A comparison finds less, equal or greater; a loop runs not at all, once, or more often; a start index lies
at the first place, inside, at the last one, or out of range. A fault that changes one outcome only shows on
inputs that make it happen. What no sensible input does (NaN, an index out of range, an overflow) is legal,
too, but are `odd`: unusual enough that frameworks may never let them happen.

Computations that are applied to elements (reducers, comparators of sorts) are not looked into: what they
decide is asked of the instruction that applies them.

Questions are what decisions ask, whatever their operands are called: to find those that another program has
not.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct

from hlotool.facts.demands import StartIndex, start_indices
from hlotool.facts.flow import CallGraph, handed_on
from hlotool.facts.scalar_form import is_choice, monoid_opcodes, scalar_form
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, by_opcode, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.ir.walk import branches
from hlotool.system.resources import spend


class Kind(enum.Enum):
    """What is decided."""

    COMPARISON = "comparison"
    SELECTION = "selection"
    CLAMPING = "clamping"
    EXTREMUM = "extremum"
    LOGIC = "logic"
    BRANCH = "branch"
    TRIP_COUNT = "trip count"
    START_INDEX = "start index"
    OVERLAP = "overlap of windows"
    DIVISION = "integer division"
    SHIFT = "shift amount"
    SIGN = "sign"
    CONVERSION = "conversion"
    OVERFLOW = "integer overflow"
    ORDER = "order"
    TIES = "choice"
    FINITENESS = "finiteness"
    NAN = "NaN among terms"
    ALL_OR_ANY = "all or any"
    GROUPS = "group sizes"


class Decision(Struct, frozen=True):
    """One question that the data answers.

    Attributes:
        instruction: that asks it.
        kind: of the question.
        outcomes: answers that sensible inputs give.
        odd: further answers that are legal but unusual (NaN, out of range, overflow).
        operands: numbers of the operands that the answer depends on.
        start: the component in question, of a start index.
    """

    instruction: Instruction
    kind: Kind
    outcomes: tuple[str, ...]
    odd: tuple[str, ...] = ()
    operands: tuple[int, ...] = ()
    start: StartIndex | None = None

    @property
    def is_open(self) -> bool:
        """Whether sensible inputs may answer in more than one way."""
        return len(self.outcomes) > 1

    @property
    def all_outcomes(self) -> tuple[str, ...]:
        """Sensible ones first."""
        return self.outcomes + self.odd


_Rule: TypeAlias = Callable[[Instruction], Iterator[Decision]]
_RULES: dict[str, _Rule] = {}


def decisions(calls: CallGraph) -> Iterator[Decision]:
    """The decisions of a program, in textual order of the computations that it runs step by step."""
    # A reducer inside of a fusion is applied to elements, too.
    runs = set(calls.in_order_of_execution())
    for instruction in calls.home:
        rule = _RULES.get(instruction.opcode)
        if rule is not None and instruction in runs:
            yield from rule(instruction)


def _decides(*opcodes: str) -> Callable[[_Rule], _Rule]:
    return by_opcode(_RULES, opcodes)


def _nan(kind: ElementType | None, name: str = "NaN") -> tuple[str, ...]:
    """The unusual outcome that a comparison of numbers of this type may have."""
    return (name,) if kind is not None and kind.is_inexact else ()


# Comparisons and choices


@_decides("compare")
def _compare(instruction: Instruction) -> Iterator[Decision]:
    is_equality = instruction.text("direction") in ("EQ", "NE")
    outcomes = ("equal", "unequal") if is_equality else ("less", "equal", "greater")
    odd = _nan(instruction.operands[0].array_type, "unordered")
    yield Decision(instruction, Kind.COMPARISON, outcomes, odd, (0, 1))


@_decides("select")
def _select(instruction: Instruction) -> Iterator[Decision]:
    yield Decision(instruction, Kind.SELECTION, ("true", "false"), operands=(0,))


@_decides("clamp")
def _clamp(instruction: Instruction) -> Iterator[Decision]:
    odd = _nan(instruction.array_type)
    yield Decision(instruction, Kind.CLAMPING, ("below", "inside", "above"), odd, (0, 1, 2))


@_decides("maximum", "minimum")
def _extremum(instruction: Instruction) -> Iterator[Decision]:
    if instruction.array_type is ElementType.PRED:
        yield from _connective(instruction, is_or=instruction.opcode == "maximum")
        return
    odd = _nan(instruction.array_type)
    yield Decision(instruction, Kind.EXTREMUM, ("first larger", "second larger"), odd, (0, 1))


@_decides("and", "or")
def _logic(instruction: Instruction) -> Iterator[Decision]:
    if instruction.array_type is ElementType.PRED:
        yield from _connective(instruction, is_or=instruction.opcode == "or")


def _connective(instruction: Instruction, is_or: bool) -> Iterator[Decision]:
    """Each operand alone decides once, as in modified condition/decision coverage."""
    outcomes = ("neither" if is_or else "both", "only the first", "only the second")
    yield Decision(instruction, Kind.LOGIC, outcomes, operands=(0, 1))


@_decides("is-finite")
def _is_finite(instruction: Instruction) -> Iterator[Decision]:
    yield Decision(instruction, Kind.FINITENESS, ("finite",), ("infinite", "NaN"), (0,))


# Control flow


@_decides("conditional")
def _conditional(instruction: Instruction) -> Iterator[Decision]:
    if instruction.operands[0].array_type is ElementType.PRED:
        yield Decision(instruction, Kind.BRANCH, ("true", "false"), operands=(0,))
        return
    outcomes = tuple(f"branch {number}" for number in range(len(branches(instruction))))
    yield Decision(instruction, Kind.BRANCH, outcomes, ("out of range",), (0,))


@_decides("while")
def _while(instruction: Instruction) -> Iterator[Decision]:
    yield Decision(instruction, Kind.TRIP_COUNT, ("none", "one", "several"), operands=(0,))


# Indices


@_decides("dynamic-slice", "dynamic-update-slice", "gather", "scatter")
def _indexing(instruction: Instruction) -> Iterator[Decision]:
    for start in start_indices(instruction):
        is_signed = instruction.operands[start.operand].element_type.is_signed
        odd = ("below", "above") if is_signed else ("above",)
        outcomes = _PLACES[min(start.limit, 2)]
        if start.limit or instruction.opcode == "scatter":
            yield Decision(instruction, Kind.START_INDEX, outcomes, odd, (start.operand,), start)
    if instruction.opcode in ("gather", "scatter") and not instruction.flag("unique_indices"):
        operand = 1 if instruction.opcode == "gather" else len(instruction.operands) // 2
        if instruction.operands[operand].array_shape.size > 1:
            yield Decision(instruction, Kind.OVERLAP, ("distinct", "repeated"), operands=(operand,))


#: Of starts by their limit: 0, 1, or more.
_PLACES = (("first",), ("first", "last"), ("first", "inner", "last"))


@_decides("ragged-dot")
def _ragged_dot(instruction: Instruction) -> Iterator[Decision]:
    yield Decision(instruction, Kind.GROUPS, ("empty", "not empty"), operands=(2,))


# Integers


@_decides("divide", "remainder")
def _divide(instruction: Instruction) -> Iterator[Decision]:
    kind = instruction.array_type
    if kind is None or not kind.is_integer:
        return
    if kind.is_signed:
        outcomes: tuple[str, ...] = ("exact", "+/+", "-/+", "+/-", "-/-")
        odd: tuple[str, ...] = ("by zero", "overflow")
    else:
        outcomes, odd = ("exact", "inexact"), ("by zero",)
    yield Decision(instruction, Kind.DIVISION, outcomes, odd, (0, 1))


@_decides("shift-left", "shift-right-arithmetic", "shift-right-logical")
def _shift(instruction: Instruction) -> Iterator[Decision]:
    yield Decision(instruction, Kind.SHIFT, ("zero", "in range"), ("too large",), (1,))
    kind = instruction.array_type
    if instruction.opcode != "shift-left" and kind is not None and kind.is_signed:
        yield Decision(instruction, Kind.SIGN, ("negative", "not negative"), operands=(0,))


@_decides("abs", "sign")
def _sign(instruction: Instruction) -> Iterator[Decision]:
    kind = instruction.operands[0].array_type
    if kind is not None and not kind.is_complex:
        yield Decision(instruction, Kind.SIGN, ("negative", "not negative"), _nan(kind), (0,))
        if instruction.opcode == "abs" and kind.is_signed:
            yield _overflow(instruction)


@_decides("add", "subtract", "multiply", "negate")
def _arithmetic(instruction: Instruction) -> Iterator[Decision]:
    kind = instruction.array_type
    if kind is not None and kind.is_integer:
        yield _overflow(instruction)


def _overflow(instruction: Instruction) -> Decision:
    operands = tuple(range(len(instruction.operands)))
    return Decision(instruction, Kind.OVERFLOW, ("fits",), ("wraps",), operands)


@_decides("convert")
def _convert(instruction: Instruction) -> Iterator[Decision]:
    source, target = instruction.operands[0].array_type, instruction.array_type
    if source is None or target is None or source is target or source.is_complex:
        return
    outcomes: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    if target is ElementType.PRED:
        outcomes, odd = ("zero", "not zero"), _nan(source)
    elif source is ElementType.PRED:
        outcomes = ("true", "false")
    elif source.is_floating and target.is_integer:
        outcomes, odd = ("exact", "fraction"), ("too small", "too large", "NaN")
        if target.is_signed:
            outcomes = ("exact", "positive fraction", "negative fraction")
    elif source.is_integer and target.is_integer and target.bits <= source.bits:
        outcomes, odd = ("fits",), ("wraps",)
    elif source.is_signed:
        outcomes = ("negative", "not negative")
    elif source.is_floating and target.real_part.bits < source.bits:
        outcomes, odd = ("fits",), ("overflow", "NaN")
    if outcomes:
        yield Decision(instruction, Kind.CONVERSION, outcomes, odd, (0,))


# Reductions and sorts


@_decides("sort")
def _sort(instruction: Instruction) -> Iterator[Decision]:
    (axis,) = instruction.integers("dimensions")
    if instruction.operands[0].dims[axis] > 1:
        odd = _nan(instruction.operands[0].array_type)
        operands = tuple(range(len(instruction.operands)))
        yield Decision(instruction, Kind.ORDER, ("distinct", "ties"), odd, operands)


@_decides("topk")
def _topk(instruction: Instruction) -> Iterator[Decision]:
    if instruction.integer("k") > 1:
        odd = _nan(instruction.operands[0].array_type)
        yield Decision(instruction, Kind.ORDER, ("distinct", "ties"), odd, (0,))


@_decides("reduce")
def _reduce(instruction: Instruction) -> Iterator[Decision]:
    yield from _terms(instruction)
    count = len(instruction.operands) // 2
    form = scalar_form(instruction.computation("to_apply"))
    if form is None:
        return
    opcode = monoid_opcodes(form)[0]
    kind = instruction.operands[0].array_type
    if count == 1 and kind is ElementType.PRED and opcode in opcodes_with(Trait.IDEMPOTENT):
        # The elements that a single other one decides against.
        alike = "all" if opcode in ("and", "minimum") else "none"
        yield Decision(instruction, Kind.ALL_OR_ANY, (alike, "mixed"), operands=(0,))
    elif count == 1 and kind is not None and kind.is_integer and kind.bits < 64 and opcode == "add":
        yield _overflow(instruction)
    elif count > 1 and is_choice(form):
        yield Decision(instruction, Kind.TIES, ("distinct", "ties"), operands=(0,))


@_decides("reduce-window", "select-and-scatter")
def _terms(instruction: Instruction) -> Iterator[Decision]:
    """Numbers that are combined may be NaN."""
    inputs = tuple(range(max(1, len(instruction.operands) // 2)))
    kinds = [instruction.operands[number].array_type for number in inputs]
    if any(kind is not None and kind.is_inexact for kind in kinds):
        yield Decision(instruction, Kind.NAN, ("numbers",), ("NaN",), inputs)


#: Units of work of finding what an instruction asks.
_ASKED: Final = 2_000
#: They hand a constant on.
_MOVED: Final = opcodes_with(Trait.REGROUPS) | {"convert", "slice"}
#: Steps from an operand back to the constant that it is.
_MOST_STEPS: Final = 20
#: Directions of a comparison whose operands change places.
_FLIPPED: Final[Mapping[str, str]] = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}

#: Equal ones ask the same of operands of the same types.
Question: TypeAlias = "tuple[object, ...]"


def questions(calls: CallGraph) -> frozenset[Question]:
    """All that a program asks."""
    asking = [instruction for instruction in calls.home if asks(instruction)]
    spend(_ASKED * len(asking))
    return frozenset(question(instruction, calls) for instruction in asking)


def asks(instruction: Instruction) -> bool:
    """Whether an instruction decides by what it is given, or has a point that it is made for."""
    return instruction.opcode in _ASKING


#: Opcodes that decide by what they are given.
_ASKING: Final = frozenset(
    {
        *("compare", "select", "clamp", "maximum", "minimum", "convert", "abs", "sign", "conditional"),
        *("divide", "remainder", "floor", "ceil", "round-nearest-even", "round-nearest-afz"),
        *("shift-left", "shift-right-arithmetic", "shift-right-logical", "is-finite"),
        *("dynamic-slice", "dynamic-update-slice", "gather", "scatter", "sort"),
        *("exponential", "exponential-minus-one", "log", "log-plus-one", "sqrt", "rsqrt", "tanh", "logistic"),
    }
)


def question(instruction: Instruction, calls: CallGraph) -> Question:
    """Opcode, direction, types, and the constants among the operands."""
    operands = [_operand(operand, calls) for operand in instruction.operands]
    direction = ""
    if instruction.opcode == "compare":
        direction = instruction.text("direction")
        if isinstance(operands[0], float) and not isinstance(operands[1], float):
            operands.reverse()
            direction = _FLIPPED.get(direction, direction)
    elif instruction.opcode in ("maximum", "minimum"):
        operands.sort(key=str)
    repeated = len(set(instruction.operands)) < len(instruction.operands)
    kind = instruction.array_type
    return (instruction.opcode, direction, kind, repeated, *operands)


def _operand(operand: Instruction, calls: CallGraph) -> object:
    """The number that an operand always is, or its element type."""
    kind = operand.array_type
    for _ in range(_MOST_STEPS):
        literal = operand.literal
        if literal is not None and isinstance(operand.shape, ArrayShape) and not literal.has_elided:
            flat = np.asarray(literal.array).reshape(-1)
            is_one = bool(flat.size) and not np.iscomplexobj(flat) and bool((flat == flat[0]).all())
            return float(flat[0]) if is_one else kind
        if operand.opcode in _MOVED:
            operand = operand.operands[0]
            continue
        sources = list(handed_on((operand, ()), calls))
        if len(sources) != 1 or sources[0][1]:
            return kind
        operand = sources[0][0]
    return kind
