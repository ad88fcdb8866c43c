"""The freedoms that a backend has: differences that are no fault of it, by name.

Those of XLA's CPU compiler have rules in departures.toml. The others stand here: what no document determines,
and what is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.lab.conformance.agreement import DEPARTURES, differing
from hlotool.lab.conformance.trials import Difference

#: Within the ulps of a table: of the case, or of tolerances.toml.
ROUNDING: Final = "rounding"
#: As far off as other legal executions of the program.
LEGAL_EXECUTION: Final = "legal-execution"
NAN_PAYLOAD: Final = "nan-payload"
RANGE: Final = "overflow-on-the-way"
UNSTABLE: Final = "unstable"

_Explains: TypeAlias = Callable[[Difference], Array]


@dataclass(frozen=True, slots=True)
class Freedom:
    """What the documents leave open.

    Attributes:
        opcodes: that it is about.
        meaning: what is open, and by which document.
        explains: which elements of a difference it explains.
    """

    opcodes: frozenset[str]
    meaning: str
    explains: _Explains


def _division_overflows(difference: Difference) -> Array:
    """A divisor of zero, or the smallest number over -1."""
    if not difference.kind.is_integer or len(difference.operands) != 2:
        return np.asarray(False)
    number, divisor = (operand.astype(np.int64) for operand in difference.operands)
    smallest, _ = integer_limits(difference.kind)
    return np.asarray((divisor == 0) | ((smallest < 0) & (number == smallest) & (divisor == -1)))


@np.errstate(all="ignore")
def _is_out_of_range(difference: Difference) -> Array:
    """A float that the integer type cannot hold, NaN among them."""
    source, kind = difference.source, difference.kind
    if source is None or not source.is_inexact or not kind.is_integer or not difference.operands:
        return np.asarray(False)
    operand = difference.operands[0]
    wide = np.trunc((operand.real if operand.dtype.kind == "c" else operand).astype(np.float64))
    low, high = integer_limits(kind)
    # f64 holds no 2^63 - 1: what is not below the next number is too large.
    return np.asarray(~((wide >= low) & (wide < float(high) + 1)))


@np.errstate(all="ignore")
def _is_rounded_on_the_way(difference: Difference) -> Array:
    """What conversions at once, by way of f32, or by way of f16 give."""
    kind, source = difference.kind, difference.source
    if not kind.is_narrow_float or source is None or source.is_complex or not difference.operands:
        return np.asarray(False)
    operand, dtype = difference.operands[0], dtype_of(kind)
    if not (source.is_floating or source.is_integer):
        return np.asarray(False)
    single = operand.astype(np.float32)
    ways = (single, operand.astype(np.float16), single.astype(np.float16), _rounded_to_odd(operand))
    same = [~differing(difference.theirs, way.astype(dtype)) for way in ways]
    return np.asarray(np.logical_or.reduce(same))


@np.errstate(all="ignore")
def _rounded_to_odd(values: Array) -> Array:
    """f32 values that any narrower type rounds as it would round `values` themselves.

    Where f32 does not hold a value, it becomes the neighbour on its own side of all ties.
    """
    single = values.astype(np.float32)
    exact, back = values.astype(np.float64), single.astype(np.float64)
    towards = np.where(exact > back, np.float32(np.inf), np.float32(-np.inf))
    is_exact = (exact == back) | ~np.isfinite(back)
    return np.where(is_exact, single, np.nextafter(single, towards)).astype(np.float32)


#: By name.
OPEN: Final[Mapping[str, Freedom]] = MappingProxyType(
    {
        "division-overflow": Freedom(
            frozenset({"divide", "remainder"}),
            "integers: division by zero, and of the smallest number by -1, is implementation-defined "
            "(operation_semantics.md#div)",
            _division_overflows,
        ),
        "conversion-out-of-range": Freedom(
            frozenset({"convert"}),
            "floats that an integer type cannot hold convert to what the implementation says "
            "(StableHLO, convert)",
            _is_out_of_range,
        ),
        "conversion-by-way-of-another-type": Freedom(
            frozenset({"convert"}),
            "to narrow floats at once, or rounded to f32 or f16 first: XLA's CPU code goes by the processor",
            _is_rounded_on_the_way,
        ),
    }
)

_OTHERS = {
    ROUNDING: "within the ulps that tolerances.toml, or the case itself, allows",
    LEGAL_EXECUTION: "as far off as other legal executions: sums in another order, other roundings",
    NAN_PAYLOAD: "a NaN of other bits where no document says which",
    RANGE: "infinite or NaN on one side, because a value on the way is too large for its type there",
    UNSTABLE: "legal executions differ so much that nothing can be said",
}


def meaning(name: str) -> str:
    """What a freedom allows, in one sentence.

    Raises:
        KeyError: there is none of that name.
    """
    if name in OPEN:
        return OPEN[name].meaning
    if name in DEPARTURES:
        rule = DEPARTURES[name]
        return f"as XLA's {'CPU code' if rule.side == 'cpu' else 'evaluator'}: {rule.xla}"
    return _OTHERS[name]
