"""Where demands come from: for each opcode, what it asks of its operands.

XLA: operation_semantics.md (index clamping of dynamic-slice and gather, skipped windows of scatter, domains
of elementwise functions, identities of reductions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Final, TypeAlias

from msgspec import Struct

from hlotool.facts.demands import (
    AnyBits,
    Demand,
    Exactly,
    InRange,
    Matrix,
    MatrixKind,
    Ordered,
    Scaled,
    StartIndex,
    start_indices,
)
from hlotool.facts.ranges import ANY, FUNCTIONS, NONNEGATIVE, NONZERO, POSITIVE, ForwardRanges, Interval
from hlotool.facts.scalar_form import identities
from hlotool.ir.attributes import ConvolutionDimensions
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType

#: What demands of loops are for.
TRIP_COUNT: Final = "trip count"
#: What demands are for outside of which HLO says what comes out: NaN, an infinity, all bits gone. Of integers
#: divided by 0 it leaves that to the implementation; all of XLA's return the same (-1, or the dividend).
DOMAINS: Final = frozenset({"divisor", "argument", "amount", "base", "variance"})


class Source(Struct, frozen=True):
    """A demand on a value.

    Attributes:
        value: the instruction that makes it.
        demand: what is asked.
        purpose: by whom and for what, such as `divisor of divide %d.3`.
    """

    value: Instruction
    demand: Demand
    purpose: str


#: A demand on an operand, by number, and the part that the operand plays.
_Asked: TypeAlias = Iterator[tuple[int, Demand, str]]
_Rule: TypeAlias = Callable[[Instruction, ForwardRanges], _Asked]


def sources(instruction: Instruction, ranges: ForwardRanges, may_skip: bool = False) -> Iterator[Source]:
    """The demands of one instruction on its operands; of a loop on what its condition compares.

    Args:
        instruction: of the program.
        ranges: of its values.
        may_skip: whether loops may as well run no iteration at all.
    """
    name = f"{instruction.opcode} %{instruction.name}"
    rule = _RULES.get(instruction.opcode)
    if rule is not None:
        for number, demand, role in rule(instruction, ranges):
            yield Source(instruction.operands[number], demand, f"{role} of {name}")
    elif instruction.opcode == "while":
        for value, demand in loop_demands(instruction, may_skip):
            yield Source(value, demand, f"{TRIP_COUNT} of {name}")


def _real(instruction: Instruction) -> bool:
    """The result is no complex array: domains are those of real functions."""
    return isinstance(instruction.shape, ArrayShape) and not instruction.shape.element_type.is_complex


# Indices


def _gather(instruction: Instruction, _: ForwardRanges) -> _Asked:
    yield from _index_vectors(instruction, 1, "start_indices_batching_dims")


def _scatter(instruction: Instruction, _: ForwardRanges) -> _Asked:
    yield from _index_vectors(instruction, len(instruction.operands) // 2, "scatter_indices_batching_dims")


def _index_vectors(instruction: Instruction, operand: int, batching: str) -> _Asked:
    """Ranges and order of index vectors."""
    starts = start_indices(instruction)
    axis = starts[0].axis if starts else None
    if starts:
        yield operand, InRange(_positions(starts), axis, required=False), "indices"
    distinct = instruction.flag("unique_indices")
    ascending = instruction.flag("indices_are_sorted")
    if distinct or ascending:
        words = " and ".join(w for w, on in (("unique", distinct), ("sorted", ascending)) if on)
        order = Ordered(distinct, ascending, axis, instruction.integers(batching, ()))
        yield operand, order, f"indices declared {words}"


def _positions(starts: Sequence[StartIndex]) -> tuple[Interval, ...]:
    """Where windows lie inside."""
    return tuple(Interval(0, start.limit) for start in starts)


def _starts(instruction: Instruction, _: ForwardRanges) -> _Asked:
    """Start indices of a dynamic slice or update."""
    starts = start_indices(instruction)
    if starts and starts[0].axis is not None:
        yield starts[0].operand, InRange(_positions(starts), 0, required=False), "start indices"
        return
    for start in starts:
        yield start.operand, InRange(_positions([start]), required=False), "start index"


def _ragged_dot(instruction: Instruction, _: ForwardRanges) -> _Asked:
    ragged = instruction.integers("lhs_ragged_dims", ())
    rows = prod(instruction.operands[0].dims[d] for d in ragged)
    groups = max(1, instruction.operands[2].dims[-1])
    yield 2, InRange((Interval(0, rows // groups),), required=False), "group sizes"


def _conditional(instruction: Instruction, _: ForwardRanges) -> _Asked:
    if instruction.operands[0].element_type is not ElementType.PRED:
        branches = sum(1 for _ in instruction.called)
        yield 0, InRange((Interval(0, branches - 1),), required=False), "branch index"


def _compare(instruction: Instruction, ranges: ForwardRanges) -> _Asked:
    """`labels == iota`: a one-hot encoding, which only sees labels that the iota counts."""
    if instruction.text("direction") not in ("EQ", "NE"):
        return
    if not instruction.operands[0].element_type.is_integer:
        return
    for number, other in ((0, 1), (1, 0)):
        counted = ranges.of(instruction.operands[other])
        if _is_iota(instruction.operands[other]) and counted.is_bounded:
            yield number, InRange((counted,), required=False), "labels"


def _is_iota(instruction: Instruction) -> bool:
    while instruction.opcode in opcodes_with(Trait.REGROUPS, Trait.CONVERTS) - {"bitcast"}:
        instruction = instruction.operands[0]
    return instruction.opcode == "iota"


def _set_dimension_size(instruction: Instruction, _: ForwardRanges) -> _Asked:
    dimension = instruction.integers("dimensions", ())[0]
    yield 1, InRange((Interval(1, max(1, instruction.operands[0].dims[dimension])),)), "size"


# Domains


def _domain(operand: int, interval: Interval, role: str) -> _Rule:
    def rule(instruction: Instruction, _: ForwardRanges) -> _Asked:
        if _real(instruction):
            yield operand, InRange((interval,)), role

    return rule


def _power(instruction: Instruction, ranges: ForwardRanges) -> _Asked:
    exponent = ranges.of(instruction.operands[1])
    # The bounds of an iota are integers, also where it is one of floats.
    is_whole = exponent.is_point and float(exponent.low).is_integer()
    if instruction.element_type.is_integer:
        # 20 is the largest integer that is drawn by default, and 20**6 still far from the limit of s32.
        yield 1, InRange((Interval(0, 6),)), "exponent"
    elif not _real(instruction) or (is_whole and exponent.low >= 0):
        return
    elif is_whole:
        yield 0, InRange((NONZERO,)), "base"
    else:
        yield 0, InRange((POSITIVE,)), "base"


def _shift(instruction: Instruction, _: ForwardRanges) -> _Asked:
    bits = instruction.operands[0].element_type.bits
    yield 1, InRange((Interval(0, bits - 1),)), "amount"


# Reductions, matrices, random numbers


def _reduction(instruction: Instruction, _: ForwardRanges) -> _Asked:
    count = len(instruction.operands) // 2
    for number, identity in enumerate(identities(next(instruction.called), count)):
        if identity is not None:
            yield count + number, Exactly(identity), "initial value"


def _select_and_scatter(instruction: Instruction, _: ForwardRanges) -> _Asked:
    (identity,) = identities(instruction.computation("scatter"), 1)
    if identity is not None:
        yield 2, Exactly(identity), "initial value"


def _cholesky(_: Instruction, __: ForwardRanges) -> _Asked:
    yield 0, Matrix(MatrixKind.POSITIVE_DEFINITE), "matrix"


def _triangular_solve(instruction: Instruction, _: ForwardRanges) -> _Asked:
    lower = instruction.flag("lower")
    yield 0, Matrix(MatrixKind.LOWER if lower else MatrixKind.UPPER), "matrix"


def _custom_call(instruction: Instruction, _: ForwardRanges) -> _Asked:
    """LAPACK and cuSOLVER factorisations, which JAX calls instead of the HLO instructions."""
    target = instruction.custom_call_target.lower()
    if "potrf" in target or "cholesky" in target:
        yield 0, Matrix(MatrixKind.POSITIVE_DEFINITE), "matrix"


def _dot(instruction: Instruction, _: ForwardRanges) -> _Asked:
    dims = instruction.operands[1].dims
    yield from _weights(prod(dims[d] for d in instruction.integers("rhs_contracting_dims", ())))


def _convolution(instruction: Instruction, _: ForwardRanges) -> _Asked:
    labels, dims = instruction.attribute("dim_labels", ConvolutionDimensions), instruction.operands[1].dims
    yield from _weights(dims[labels.kernel_input_feature] * prod(dims[d] for d in labels.kernel_spatial))


def _weights(terms: int) -> _Asked:
    if terms > 1:
        yield 1, Scaled(float(terms**-0.5)), "weights"


def _random_bits(operand: int) -> _Rule:
    def rule(_: Instruction, __: ForwardRanges) -> _Asked:
        yield operand, AnyBits(), "state"

    return rule


_RULES: dict[str, _Rule] = {
    "gather": _gather,
    "scatter": _scatter,
    "dynamic-slice": _starts,
    "dynamic-update-slice": _starts,
    "ragged-dot": _ragged_dot,
    "conditional": _conditional,
    "compare": _compare,
    "set-dimension-size": _set_dimension_size,
    "divide": _domain(1, NONZERO, "divisor"),
    "remainder": _domain(1, NONZERO, "divisor"),
    **{name: _domain(0, f.domain, "argument") for name, f in FUNCTIONS.items() if f.domain != ANY},
    "power": _power,
    **dict.fromkeys(opcodes_with(Trait.SHIFTS), _shift),
    "batch-norm-inference": _domain(4, NONNEGATIVE, "variance"),
    "reduce": _reduction,
    "reduce-window": _reduction,
    "select-and-scatter": _select_and_scatter,
    "cholesky": _cholesky,
    "triangular-solve": _triangular_solve,
    "custom-call": _custom_call,
    "dot": _dot,
    "convolution": _convolution,
    "rng-bit-generator": _random_bits(0),
    "stochastic-convert": _random_bits(1),
}


# Small trip counts: what the condition of a loop compares.

#: What parameters that decide about a loop may hold: counters and Collatz sequences end soon.
SMALL_COUNTS: Final = InRange((Interval(1, 16),), required=False)
#: The same where a loop may run no iteration: what counters are compared with.
_COUNTS_FROM_ZERO: Final = InRange((Interval(0, 16),), required=False)
#: Comparisons that fail sooner or later, whatever number a counter is compared with.
_ORDERS: Final = frozenset({"LT", "LE", "GT", "GE"})

#: How a condition combines its comparisons.
_LOGIC = frozenset(
    ("and", "or", "not", "reduce", "broadcast", "reshape", "copy", "convert", "get-tuple-element", "select")
)


def loop_demands(loop: Instruction, may_skip: bool = False) -> Iterator[tuple[Instruction, InRange]]:
    """Integers that the loop's condition compares, each to be a small positive number.

    Args:
        loop: a `while`.
        may_skip: whether a number that a counter runs up or down to may be 0.
    """
    condition = loop.attributes["condition"]
    assert isinstance(condition, Computation)
    for comparison in _comparisons(condition.root):
        for value in comparison.operands:
            if isinstance(value.shape, ArrayShape) and value.shape.element_type.is_integer:
                is_bound = comparison.text("direction") in _ORDERS and _stays(loop, value)
                yield value, _COUNTS_FROM_ZERO if may_skip and is_bound else SMALL_COUNTS


def _stays(loop: Instruction, value: Instruction) -> bool:
    """Whether a value of the condition is a part of the state that the body hands on as it is."""
    if value.opcode != "get-tuple-element" or value.operands[0].opcode != "parameter":
        return False
    number, result = value.integer("index"), loop.computation("body").root
    if result.opcode != "tuple" or number >= len(result.operands):
        return False
    after = result.operands[number]
    is_part = after.opcode == "get-tuple-element" and after.operands[0].opcode == "parameter"
    return is_part and after.integer("index") == number


def _comparisons(predicate: Instruction) -> Iterator[Instruction]:
    if predicate.opcode == "compare":
        yield predicate
    elif predicate.opcode in ("call", "fusion"):
        yield from _comparisons(next(predicate.called).root)
    elif predicate.opcode in _LOGIC:
        for operand in predicate.operands:
            yield from _comparisons(operand)
