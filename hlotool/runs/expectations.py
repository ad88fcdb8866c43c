"""What a program expects of its own values: the `check.expect_*` of StableHLO's tests.

Source: stablehlo/tests/CheckOps.td and CheckOps.cpp: `expect_eq` compares values, `expect_almost_eq` allows
an absolute difference (0.0001 unless told otherwise), `expect_close` a number of representable values between
the two (3 unless told otherwise). NaN meets NaN.

Where the values are further apart, other legal executions of the program decide, as for any result: an
expected value is one that some implementation returned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct

from hlotool.backends.base import ReadingProbe, Value
from hlotool.backends.registry import get_backend
from hlotool.facts.float_order import ulp_distance
from hlotool.facts.recognition import EXPECTATIONS
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ElementType
from hlotool.judge.verdicts import Verdict

_ULPS = 3
_TOLERANCE = 1e-4


def expectations(module: Module) -> list[Instruction]:
    """The comparisons that a program makes, in textual order."""
    return [i for i in module.instructions() if i.custom_call_target in EXPECTATIONS]


class Unmet(Struct, frozen=True):
    """An expectation that the values do not meet as it is written.

    Attributes:
        verdict: of the judge on the expected value, as on any result of the program: `wrong`, or why not.
        reason: where, by how much, and what the judge says, in one sentence.
    """

    verdict: Verdict
    reason: str


def unmet_expectations(module: Module, arguments: Sequence[Value]) -> list[Unmet]:
    """What a program expects of itself and does not find, the worst first.

    Args:
        module: with `expectations`.
        arguments: of one device.

    Raises:
        HlotoolError: as the numpy backend does.
    """
    watch = ReadingProbe()
    found: list[Unmet] = []

    def look(call: Instruction, values: Sequence[Value]) -> None:
        if difference := _difference(call, *values[:2]):
            line = call.line or (call.metadata.source_line if call.metadata else 0)
            verdict, reason = _judged(module, arguments, call, *values[:2])
            found.append(Unmet(verdict, f"line {line}: {call.custom_call_target}: {difference}{reason}"))

    for call in expectations(module):
        watch.readers[call] = lambda values, call=call: look(call, values)  # type: ignore[misc]
    get_backend("numpy").compile(module).run(arguments, watch)
    return sorted(found, key=lambda one: -one.verdict.rank)


def _judged(
    module: Module, arguments: Sequence[Value], call: Instruction, actual: Value, expected: Value
) -> tuple[Verdict, str]:
    """The verdict on an expected value, and its reason to append; inside other computations none is asked."""
    if call not in module.entry.instructions or np.asarray(actual).shape != np.asarray(expected).shape:
        return Verdict.WRONG, ""
    entry = replace(module.entry, root=call.operands[0])
    others = [entry if c is module.entry else c for c in module.computations]
    program = replace(module, entry=entry, computations=others)
    from hlotool.judge.rules.judge import judge
    from hlotool.judge.rules.judgement import judgement_of

    comparison = judge(judgement_of(program, arguments, expected, expected=actual))
    if comparison.verdict is Verdict.WRONG:
        return Verdict.WRONG, ""
    # It is not what was written, however close.
    verdict = max(comparison.verdict, Verdict.ROUNDING, key=lambda one: one.rank)
    return verdict, f"; {comparison.reason}"


def _difference(call: Instruction, actual: Any, expected: Any) -> str:
    """Where two values differ by more than a call allows; empty where they do not."""
    kind = call.operands[0].element_type
    left, right = np.asarray(actual), np.asarray(expected)
    if left.shape != right.shape:
        return f"sizes {left.shape}, not {right.shape}"
    wrong = ~_close(call, kind, left, right)
    if not wrong.any():
        return ""
    at = tuple(int(n) for n in np.argwhere(wrong)[0])
    where = f" at {at}" if at else ""
    return f"{left[at]!s}, not {right[at]!s}{where}, {int(wrong.sum())} of {wrong.size} elements"


def _close(call: Instruction, kind: ElementType, left: Any, right: Any) -> Any:
    with np.errstate(all="ignore"):
        if kind.is_complex:
            parts = (
                _close(call, kind.real_part, getattr(left, p), getattr(right, p)) for p in ("real", "imag")
            )
            return np.logical_and(*parts)
        same = np.asarray(left == right)
        if not kind.is_floating:
            return same
        same |= np.isnan(left) & np.isnan(right)
        if call.custom_call_target == "check.expect_almost_eq":
            allowed = _option(call, "tolerance", _TOLERANCE)
            return same | (np.abs(left.astype(np.float64) - right.astype(np.float64)) <= allowed)
        if call.custom_call_target == "check.expect_close":
            finite = np.isfinite(left) & np.isfinite(right)
            distance = ulp_distance(left.copy(), right.copy(), kind).reshape(left.shape)
            return same | (finite & (distance <= _option(call, "max_ulp_difference", _ULPS)))
    return same


def _option(call: Instruction, name: str, default: float) -> float:
    found = re.search(rf"\b{name} = ([-+\w.]+)", call.config_text)
    return float(found[1]) if found else default
