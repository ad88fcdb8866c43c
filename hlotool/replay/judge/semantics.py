"""Whether a known difference between XLA's implementations explains a result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hlotool.backends.numpy.departures import DEPARTURES, DepartingBackend
from hlotool.backends.numpy.noise import Member
from hlotool.backends.numpy.policy import Policy
from hlotool.backends.numpy.varied import VariedBackend
from hlotool.errors import HlotoolError
from hlotool.findings.verdict import Verdict
from hlotool.ir.dtypes import Array
from hlotool.numerics.compare import compare_values
from hlotool.numerics.tolerance import few_ulps
from hlotool.replay.judge.ensemble import array_leaves
from hlotool.replay.judge.judgement import Leaf, Side


@dataclass(frozen=True, slots=True)
class Rule:
    """A known difference.

    Attributes:
        id: its name.
        text: what XLA does, to be read after `XLA`.
    """

    id: str
    text: str


#: What XLA's CPU and GPU code does at run time, but not where it folds constants.
_FLUSHED = Rule("flushed-denormals", "takes denormal numbers for zero at run time")


class Departures:
    """The results of a program under the rules that concern it, each executed when it is asked for.

    Args:
        side: the reference.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        self._results: dict[Rule, list[Array] | None] = {}
        found = (Rule(known.id, known.text) for known in DEPARTURES if known.occurs_in(side.module))
        self._rules = [*dict.fromkeys(found), _FLUSHED]

    def explaining(self, leaf: Leaf, flushes: bool = True) -> Rule | None:
        """The rule under which the reference returns what is in question; None where there is none.

        Args:
            leaf: with the result in question.
            flushes: whether the result may come of flushed denormal numbers.
        """
        for rule in self._rules if flushes else self._rules[:-1]:
            value = self._value(rule, leaf.number)
            if value is None or np.array_equal(value, leaf.expected):
                continue
            compared = compare_values(leaf.shape, value, leaf.actual, facts=[leaf.facts], tolerance=few_ulps)
            if compared.verdict in (Verdict.IDENTICAL, Verdict.AGREE):
                return rule
        return None

    def in_part(self, leaf: Leaf) -> Iterator[tuple[Rule, Array]]:
        """The rules that some elements follow to the bit, each with what it leaves to be explained.

        That is the result in question with the values of the reference in the place of those elements.
        """
        for rule in self._rules[:-1]:
            value = self._value(rule, leaf.number)
            if value is None:
                continue
            follows = _same(value, leaf.actual) & ~_same(value, leaf.expected)
            if follows.any():
                yield rule, np.where(follows, leaf.expected, leaf.actual)

    def _value(self, rule: Rule, number: int) -> Array | None:
        if rule not in self._results:
            self._results[rule] = self._executed(rule)
        leaves = self._results[rule]
        return None if leaves is None else leaves[number]

    def _executed(self, rule: Rule) -> list[Array] | None:
        flushing = VariedBackend(Policy(varied=True), Member(flushes=True))
        backend = flushing if rule is _FLUSHED else DepartingBackend(rule.id)
        try:
            return array_leaves(self._side.shape, self._side.execute(backend)())
        except HlotoolError:
            return None


def _same(one: Array, other: Array) -> npt.NDArray[np.bool_]:
    """Which elements are equal, or both NaN."""
    found: npt.NDArray[np.bool_] = (one == other) | ((one != one) & (other != other))
    return found
