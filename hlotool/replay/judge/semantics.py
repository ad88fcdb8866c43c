"""Whether a known difference between XLA's implementations explains a result."""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy.departures import DEPARTURES, DepartingBackend
from hlotool.backends.numpy.noise import Member
from hlotool.backends.numpy.policy import Policy
from hlotool.backends.numpy.varied import VariedBackend
from hlotool.errors import HlotoolError
from hlotool.findings.verdict import Verdict
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ArrayShape
from hlotool.numerics.compare import compare_values
from hlotool.numerics.facts import Facts
from hlotool.numerics.tolerance import few_ulps
from hlotool.replay.judge.ensemble import Side, array_leaves

#: What XLA's CPU and GPU code does at run time, but not where it folds constants.
_FLUSHED = "flushed-denormals"
_FLUSHES = "takes denormal numbers for zero at run time"


class Departures:
    """The results of a program under the rules that concern it, each executed when it is asked for.

    Args:
        side: the reference.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        self._results: dict[str, list[Array] | None] = {}
        found = {rule.id: rule.text for rule in DEPARTURES if rule.occurs_in(side.module)}
        self._rules = {**found, _FLUSHED: _FLUSHES}

    def explaining(
        self, number: int, expected: Array, actual: Array, shape: ArrayShape, facts: Facts
    ) -> tuple[str, str] | None:
        """Id and text of the rule under which leaf `number` is `actual`; None where there is none."""
        for rule, text in self._rules.items():
            leaf = self._leaf(rule, number)
            if leaf is None or np.array_equal(leaf, expected):
                continue
            verdict = compare_values(shape, leaf, actual, facts=[facts], derived=few_ulps).verdict
            if verdict in (Verdict.IDENTICAL, Verdict.AGREE):
                return rule, text
        return None

    def _leaf(self, rule: str, number: int) -> Array | None:
        if rule not in self._results:
            self._results[rule] = self._executed(rule)
        leaves = self._results[rule]
        return None if leaves is None else leaves[number]

    def _executed(self, rule: str) -> list[Array] | None:
        flushing = VariedBackend(Policy(varied=True), Member(flushes=True))
        backend = flushing if rule == _FLUSHED else DepartingBackend(rule)
        try:
            return array_leaves(self._side.shape, self._side.execute(backend)())
        except HlotoolError:
            return None
