"""Operations that the signs and ranges of their operands decide: |x| is x where x is never negative.

The order of words (`pseudo_real`) obeys no inequality but those of single factors, so that max(exp(a) +
exp(b), 0) has no law in the field alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from hlotool.analysis.inequalities import Law
from hlotool.analysis.signs import Order, Signs
from hlotool.backends.field import words as w
from hlotool.backends.field.held import is_float
from hlotool.backends.field.trial import Trial
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction

_Decided: TypeAlias = "tuple[Callable[..., Any], frozenset[Law]]"
_Rule: TypeAlias = Callable[[Instruction, Signs, Trial], "_Decided | None"]

#: What a comparison is where a ≤ b always, and where a ≥ b; a direction in place of an answer where it
#: depends.
_COMPARED: dict[Order, dict[str, bool | str]] = {
    Order.AT_MOST: {"LE": True, "GT": False, "GE": "EQ", "LT": "NE"},
    Order.AT_LEAST: {"GE": True, "LT": False, "LE": "EQ", "GT": "NE"},
}


def decided(instruction: Instruction, signs: Signs, trial: Trial) -> _Decided | None:
    """The function of words that an instruction on floats is by what is known of its operands, and the laws.

    None where nothing that is known decides it.
    """
    rule = _RULES.get(instruction.opcode)
    if rule is None or not all(is_float(operand.shape) for operand in instruction.operands):
        return None
    return rule(instruction, signs, trial)


def _absolute(instruction: Instruction, signs: Signs, _: Trial) -> _Decided | None:
    fact = signs.of(instruction.operands[0])
    if fact.interval.low >= 0:
        return _itself, fact.laws
    return (w.negate, fact.laws) if fact.interval.high <= 0 else None


def _sign(instruction: Instruction, signs: Signs, _: Trial) -> _Decided | None:
    fact = signs.of(instruction.operands[0])
    for is_one_sign, one in ((fact.interval.low >= 0, w.ONE), (fact.interval.high <= 0, w.negate(w.ONE))):
        if is_one_sign:
            return lambda x, one=one: np.where(w.equal(x, w.ZERO), w.ZERO, one), fact.laws
    return None


def _extremum(instruction: Instruction, signs: Signs, _: Trial) -> _Decided | None:
    found = signs.order(*instruction.operands)
    if found is None:
        return None
    order, laws = found
    is_first = (order is Order.AT_LEAST) == (instruction.opcode == "maximum")
    return (lambda a, b: a if is_first else b), laws


def _clamp(instruction: Instruction, signs: Signs, trial: Trial) -> _Decided | None:
    low, value, high = instruction.operands
    above, below = signs.order(low, value), signs.order(value, high)
    above = above if above is not None and above[0] is Order.AT_MOST else None
    below = below if below is not None and below[0] is Order.AT_MOST else None
    if above is not None and below is not None:
        return (lambda low, x, high: x), above[1] | below[1]
    if above is not None:
        return (lambda low, x, high: trial.minimum(x, high)), above[1]
    return None if below is None else ((lambda low, x, high: trial.maximum(low, x)), below[1])


def _compare(instruction: Instruction, signs: Signs, trial: Trial) -> _Decided | None:
    found = signs.order(*instruction.operands)
    if found is None:
        return None
    answer = _COMPARED[found[0]].get(instruction.text("direction"))
    if answer is None:
        return None
    if isinstance(answer, str):
        return (lambda a, b: trial.compare(answer, a, b)), found[1]
    return (lambda a, b: np.full(np.shape(a), answer)), found[1]


def _itself(x: Array) -> Array:
    return x


_RULES: dict[str, _Rule] = {
    "abs": _absolute,
    "clamp": _clamp,
    "compare": _compare,
    "maximum": _extremum,
    "minimum": _extremum,
    "sign": _sign,
}
