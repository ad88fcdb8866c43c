"""From a decision about a leaf to its comparison: evidence, pattern, instruction, reason in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.errors import HlotoolError
from hlotool.findings.verdict import Verdict
from hlotool.ir.dtypes import Array
from hlotool.ir.types import ArrayShape, Shape
from hlotool.numerics import patterns, rearrangements
from hlotool.numerics.exchangeability import Score
from hlotool.numerics.facts import Facts
from hlotool.numerics.flips import Flips
from hlotool.numerics.patterns import Difference, Pattern, difference, recognise
from hlotool.numerics.reasons import (
    LESS_STABLE,
    flipping_reason,
    legal_reason,
    range_reason,
    unstable_reason,
    wrong_reason,
)
from hlotool.numerics.ulp import epsilon
from hlotool.numerics.verdict import Evidence, LeafComparison
from hlotool.replay.judge.amplifier import amplifying_instruction
from hlotool.replay.judge.ensemble import Ensemble
from hlotool.replay.judge.f64_check import WideRelation
from hlotool.replay.judge.semantics import Departures
from hlotool.replay.judge.stale_values import SourceFinder

#: What an ensemble says of a leaf; None where none was asked.
Finding: TypeAlias = Score | Flips | None

#: Patterns by their own shape, the most specific ones first.
FIRST_TESTS = (
    patterns.not_finite,
    patterns.saturation,
    patterns.untouched,
    patterns.sign,
    patterns.constant_factor,
    rearrangements.off_by_one_row,
    rearrangements.shift,
    rearrangements.transpose,
    rearrangements.reversal,
    rearrangements.swap,
    patterns.missing_addend,
)
#: Those that explain little.
LAST_TESTS = (rearrangements.reordered, patterns.narrow_precision, patterns.place)


@dataclass(frozen=True, slots=True)
class Case:
    """A leaf that is judged.

    Attributes:
        leaf: what the quick look found.
        number: of the leaf.
        wide: what both programs show in f64.
    """

    leaf: LeafComparison
    number: int
    wide: WideRelation | None


@dataclass(frozen=True, slots=True)
class Explainer:
    """Says why.

    Attributes:
        ensemble: executions of the reference.
        shapes: of the leaves.
        expected: the reference's leaves.
        actual: the leaves in question.
        facts: of the leaves.
        seed: of the ensemble.
        departures: executions of the reference under known rules.
    """

    ensemble: Ensemble
    shapes: Sequence[Shape]
    expected: Sequence[Array]
    actual: Sequence[Array]
    facts: Sequence[Facts]
    seed: int
    departures: Departures

    def rounding(self, case: Case, found: Score | Flips) -> LeafComparison:
        """As far off as legal executions are."""
        return self._made(
            case, Verdict.ROUNDING, legal_reason(self._evidence(case, found), self.facts[case.number]), found
        )

    def flipping(self, case: Case, found: Score | Flips) -> LeafComparison:
        """A few elements that larger errors flip, too."""
        count = found.count if isinstance(found, Flips) else int(found.beyond.sum())
        return self._made(case, Verdict.ROUNDING, flipping_reason(count), found)

    def less_stable(self, case: Case, found: Score) -> LeafComparison:
        """The tested program means the same and rounds in other places."""
        return self._made(case, Verdict.ROUNDING, LESS_STABLE, found)

    def unstable(self, case: Case, found: Score | Flips) -> LeafComparison:
        """Legal executions differ too much; names the instruction that makes them do so."""
        evidence = self._evidence(case, found)
        evidence = replace(evidence, instruction=amplifying_instruction(self.ensemble))
        reason = unstable_reason(evidence, self.facts[case.number])
        return replace(case.leaf, verdict=Verdict.UNSTABLE, reason=reason, evidence=evidence)

    def range(self, case: Case, found: Score) -> LeafComparison:
        """Too large or too small on the way, on one side; names the instruction that overflows."""
        evidence = self._evidence(case, found)
        evidence = replace(evidence, instruction=self.ensemble.overflow())
        return replace(
            case.leaf, verdict=Verdict.RANGE, reason=range_reason(evidence, found), evidence=evidence
        )

    def wrong(self, case: Case, found: Finding) -> LeafComparison:
        """Nothing legal explains it, unless a known departure of XLA's does; names the pattern."""
        return self._departure(case, found) or self._accusation(case, found)

    def _departure(self, case: Case, found: Finding) -> LeafComparison | None:
        number, shape = case.number, self.shapes[case.number]
        assert isinstance(shape, ArrayShape)
        expected, actual = self.expected[number], self.actual[number]
        rule = self.departures.explaining(number, expected, actual, shape, self.facts[number])
        if rule is None:
            return None
        evidence = replace(self._evidence(case, found), rule=rule[0])
        reason = f"XLA {rule[1]} ({rule[0]}), and with that rule the reference returns the same"
        return replace(case.leaf, verdict=Verdict.SEMANTICS, reason=reason, evidence=evidence)

    def _accusation(self, case: Case, found: Finding) -> LeafComparison:
        flags = self._wrong_elements(case, found)
        pattern = self._pattern(case.number, flags, found)
        evidence = replace(self._evidence(case, found), beyond=int(flags.sum()))
        if pattern is not None:
            evidence = replace(evidence, pattern=pattern.kind, detail=pattern.text)
        reason = wrong_reason(evidence, found)
        return replace(case.leaf, verdict=Verdict.WRONG, reason=reason, evidence=evidence)

    def _made(self, case: Case, verdict: Verdict, reason: str, found: Finding) -> LeafComparison:
        return replace(case.leaf, verdict=verdict, reason=reason, evidence=self._evidence(case, found))

    def _evidence(self, case: Case, found: Finding) -> Evidence:
        wide = case.wide.value if case.wide is not None else ""
        if found is None:
            return Evidence(self.seed, wide=wide)
        if isinstance(found, Flips):
            return Evidence(self.seed, found.members, found.ratio, "flips", wide=wide)
        return Evidence(
            self.seed, found.members, found.ratio, found.statistic, found.worst_score, found.width, wide
        )

    def _wrong_elements(self, case: Case, found: Finding) -> npt.NDArray[np.bool_]:
        """Those out of reach of legal executions; all unequal ones where only their sum is."""
        flags = found.new if isinstance(found, Flips) else found.beyond if found is not None else None
        if flags is not None and flags.any():
            return flags
        expected, actual = self.expected[case.number], self.actual[case.number]
        unequal: npt.NDArray[np.bool_] = np.not_equal(expected, actual).reshape(-1)
        return unequal

    def _pattern(self, number: int, flags: npt.NDArray[np.bool_], found: Finding) -> Pattern | None:
        shape = self.shapes[number]
        if not isinstance(shape, ArrayShape) or not flags.any():
            return None
        width = found.width if isinstance(found, Score) else 0.0
        tolerance = _tolerance(shape, width)
        gap = difference(self.expected[number], self.actual[number], flags, tolerance)
        return (
            recognise(gap, FIRST_TESTS) or self._from_other_values(number, gap) or recognise(gap, LAST_TESTS)
        )

    def _from_other_values(self, number: int, gap: Difference) -> Pattern | None:
        """Another result, or a value on the way, in place of the right one."""
        for other, value in enumerate(self.expected):
            if other == number or value.shape != gap.actual.shape or value.size == 1:
                continue
            if gap.explains(difference(value, value, gap.wrong, 0).expected):
                return Pattern("swap", f"the values are those of output number {other}")
        if self.ensemble.side.watch is None:
            return None
        finder = SourceFinder(gap)
        try:
            self.ensemble.watch_reference(finder)
        except HlotoolError:
            return None
        return finder.addend or finder.stale


def _tolerance(shape: ArrayShape, width: float) -> float:
    kind = shape.element_type
    if not kind.is_inexact:
        return 0.0
    ulps = 2 if kind.is_narrow_float else 16
    return max(ulps * epsilon(kind), 8 * width)
