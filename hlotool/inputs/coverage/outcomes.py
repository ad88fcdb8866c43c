"""How each outcome of a decision shows in the values that the instruction reads.

Every test is a pass or two over the operands and stops being asked once it has been true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from hlotool.facts.decisions import Decision, Kind
from hlotool.inputs.coverage import integers
from hlotool.ir.arrays import Array, integer_limits
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType

#: Whether an outcome occurs in the values of an instruction's operands.
Test: TypeAlias = Callable[[Sequence[Any]], bool]
#: By outcome.
Tests: TypeAlias = Mapping[str, Test]


def outcome_tests(decision: Decision) -> Tests:
    """A test for each outcome of a decision that operands alone show; none for what needs more."""
    rule = _RULES.get(decision.kind)
    return {} if rule is None else rule(decision)


def some(mask: Any) -> bool:
    """Whether one element is true, of an array or of a Python number's comparison."""
    return bool(mask.any()) if getattr(mask, "ndim", 0) else bool(mask)


def has_nan(value: Any) -> bool:
    """Whether one element is NaN; never in integers."""
    if getattr(value, "ndim", 0) and value.dtype in _PROPAGATE_NAN:
        return bool(value.size) and bool(np.isnan(value.min()))
    return some(value != value)


#: The least of such numbers is NaN if one is; that takes no memory and a fourth of the time of a comparison.
_PROPAGATE_NAN: Final = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def _fixed(tests: Tests) -> Callable[[Decision], Tests]:
    """The same tests for every decision of a kind."""
    return lambda _: tests


_COMPARISON: Final[Tests] = {
    "less": lambda v: some(v[0] < v[1]),
    "equal": lambda v: some(v[0] == v[1]),
    "greater": lambda v: some(v[0] > v[1]),
    "unequal": lambda v: some(v[0] != v[1]),
    "unordered": lambda v: has_nan(v[0]) or has_nan(v[1]),
}

_CLAMPING: Final[Tests] = {
    "below": lambda v: some(v[1] < v[0]),
    "inside": lambda v: some((v[1] >= v[0]) & (v[1] <= v[2])),
    "above": lambda v: some(v[1] > v[2]),
    "NaN": lambda v: any(map(has_nan, v)),
}

_EXTREMUM: Final[Tests] = {
    "first larger": lambda v: some(v[0] > v[1]),
    "second larger": lambda v: some(v[1] > v[0]),
    "NaN": lambda v: has_nan(v[0]) or has_nan(v[1]),
}

_LOGIC: Final[Tests] = {
    "both": lambda v: some(np.logical_and(v[0], v[1])),
    "neither": lambda v: not _all(np.logical_or(v[0], v[1])),
    "only the first": lambda v: some(v[0] > v[1]),
    "only the second": lambda v: some(v[1] > v[0]),
}

_FINITENESS: Final[Tests] = {
    "finite": lambda v: some(np.isfinite(v[0])),
    "infinite": lambda v: some(np.isinf(v[0])),
    "NaN": lambda v: has_nan(v[0]),
}

_SIGN: Final[Tests] = {
    "negative": lambda v: some(v[0] < 0),
    "not negative": lambda v: some(v[0] >= 0),
    "NaN": lambda v: has_nan(v[0]),
}

_GROUPS: Final[Tests] = {
    "empty": lambda v: some(v[2] == 0),
    "not empty": lambda v: some(v[2] > 0),
}


def _all(mask: Any) -> bool:
    return bool(mask.all()) if getattr(mask, "ndim", 0) else bool(mask)


def _selection(decision: Decision) -> Tests:
    return {"true": lambda v: some(v[0]), "false": lambda v: not _all(v[0])}


def _branch(decision: Decision) -> Tests:
    if decision.outcomes == ("true", "false"):
        return _selection(decision)
    count = len(decision.outcomes)
    tests: dict[str, Test] = {
        outcome: (lambda v, number=number: int(v[0]) == number)  # type: ignore[misc]
        for number, outcome in enumerate(decision.outcomes)
    }
    return {**tests, "out of range": lambda v: not 0 <= int(v[0]) < count}


def _start_index(decision: Decision) -> Tests:
    start = decision.start
    assert start is not None
    limit = start.limit

    def component(values: Sequence[Any]) -> Any:
        indices = values[start.operand]
        if start.axis is None:
            return indices
        return np.take(indices, start.position, axis=start.axis)

    return {
        "first": lambda v: some(component(v) == 0),
        "inner": lambda v: some((component(v) > 0) & (component(v) < limit)),
        "last": lambda v: some(component(v) == limit),
        "below": lambda v: some(component(v) < 0),
        "above": lambda v: some(component(v) > limit),
    }


def _division(decision: Decision) -> Tests:
    kind = decision.instruction.element_type
    return integers.signed_division(kind) if kind.is_signed else integers.UNSIGNED_DIVISION


def _shift(decision: Decision) -> Tests:
    bits = decision.instruction.element_type.bits
    return {
        "zero": lambda v: some(v[1] == 0),
        "in range": lambda v: some((v[1] > 0) & (v[1] < bits)),
        "too large": lambda v: some((v[1] < 0) | (v[1] >= bits)),
    }


def _overflow(decision: Decision) -> Tests:
    instruction = decision.instruction
    kind = instruction.element_type
    if instruction.opcode in ("abs", "negate"):
        wraps = integers.negates_out_of_range(kind)
    elif instruction.opcode == "reduce":
        wraps = integers.sum_wraps(tuple(instruction.integers("dimensions")), kind)
    else:
        wraps = integers.wraps(instruction.opcode, kind)
    return {"fits": lambda _: True, "wraps": wraps}


def _conversion(decision: Decision) -> Tests:
    instruction = decision.instruction
    source, target = instruction.operands[0].element_type, instruction.element_type
    if target is ElementType.PRED:
        nonzero: Tests = {"zero": lambda v: some(v[0] == 0), "not zero": lambda v: some(v[0] != 0)}
        return {**nonzero, "NaN": lambda v: has_nan(v[0])}
    if source is ElementType.PRED:
        return _selection(decision)
    if target.is_floating or target.is_complex:
        return {**_SIGN, **_rounding(instruction)}
    low, high = integer_limits(target)
    if source.is_integer:
        if target.bits > source.bits:
            return _SIGN
        return {"fits": lambda _: True, "wraps": lambda v: _leaves(v[0], low, high)}
    return _truncation(low, high)


def _leaves(value: Any, low: int, high: int) -> bool:
    """Whether one integer lies outside; limits that its type cannot hold are no limits."""
    array = np.asarray(value)
    return bool(array.size) and (int(array.min()) < low or int(array.max()) > high)


def _rounding(instruction: Instruction) -> Tests:
    """From a float to a narrower one: which finite numbers become infinite."""
    from hlotool.backends.numpy.precision import converter

    convert = converter(instruction.operands[0].element_type, instruction.element_type.real_part)

    def overflows(values: Sequence[Any]) -> bool:
        value = np.asarray(values[0])
        with np.errstate(all="ignore"):
            return some(np.isfinite(value) & ~np.isfinite(convert(value)))

    return {"fits": lambda v: some(np.isfinite(v[0])), "overflow": overflows, "NaN": lambda v: has_nan(v[0])}


def _truncation(low: int, high: int) -> Tests:
    """From a float to an integer between `low` and `high`."""

    def fits(x: Any) -> Any:
        return (x > low - 1) & (x < high + 1)

    def is_cut(values: Sequence[Any]) -> Array:
        x = _number(values[0])
        mask: Array = fits(x) & (x != np.trunc(x))
        return mask

    def is_exact(values: Sequence[Any]) -> bool:
        x = _number(values[0])
        return some(fits(x) & (x == np.trunc(x)))

    return {
        "exact": is_exact,
        "fraction": lambda v: some(is_cut(v)),
        "positive fraction": lambda v: some(is_cut(v) & (_number(v[0]) > 0)),
        "negative fraction": lambda v: some(_number(v[0]) < 0) and some(is_cut(v) & (_number(v[0]) < 0)),
        "too small": lambda v: some(_number(v[0]) <= low - 1),
        "too large": lambda v: some(_number(v[0]) >= high + 1),
        "NaN": lambda v: has_nan(v[0]),
    }


def _number(value: Any) -> Any:
    """Floats in a type that has the limits of every integer type as numbers."""
    array = np.asarray(value)
    return array if array.dtype in _PROPAGATE_NAN else array.astype(np.float32)


def _all_or_any(decision: Decision) -> Tests:
    axes = tuple(decision.instruction.integers("dimensions"))

    def everywhere(values: Sequence[Any]) -> Any:
        return np.all(values[0], axis=axes)

    def somewhere(values: Sequence[Any]) -> Any:
        return np.any(values[0], axis=axes)

    return {
        "all": lambda v: some(everywhere(v)),
        "none": lambda v: not _all(somewhere(v)),
        "mixed": lambda v: some(somewhere(v) & ~everywhere(v)),
    }


_RULES: Final[dict[Kind, Callable[[Decision], Tests]]] = {
    Kind.COMPARISON: _fixed(_COMPARISON),
    Kind.SELECTION: _selection,
    Kind.CLAMPING: _fixed(_CLAMPING),
    Kind.EXTREMUM: _fixed(_EXTREMUM),
    Kind.LOGIC: _fixed(_LOGIC),
    Kind.BRANCH: _branch,
    Kind.START_INDEX: _start_index,
    Kind.DIVISION: _division,
    Kind.SHIFT: _shift,
    Kind.SIGN: _fixed(_SIGN),
    Kind.CONVERSION: _conversion,
    Kind.OVERFLOW: _overflow,
    Kind.FINITENESS: _fixed(_FINITENESS),
    Kind.ALL_OR_ANY: _all_or_any,
    Kind.GROUPS: _fixed(_GROUPS),
}
