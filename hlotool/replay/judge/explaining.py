"""From a decision about a leaf to its comparison: evidence, pattern, instruction, reason in words."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from hlotool.errors import HlotoolError
from hlotool.findings.comparison import EvidenceRecord
from hlotool.findings.provenance import source_of
from hlotool.findings.records import finite_or_none
from hlotool.findings.verdict import Verdict
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType
from hlotool.numerics import patterns, rearrangements, thresholds
from hlotool.numerics.exchangeability import Score
from hlotool.numerics.facts import origin_of
from hlotool.numerics.patterns import Difference, Pattern, difference, recognise
from hlotool.numerics.reasons import (
    LESS_STABLE,
    Finding,
    flipping_reason,
    legal_reason,
    range_reason,
    unstable_reason,
    wrong_reason,
)
from hlotool.numerics.ulp import epsilon
from hlotool.numerics.verdict import LeafComparison
from hlotool.replay.judge.amplifier import amplifying_instruction
from hlotool.replay.judge.executions import Executions
from hlotool.replay.judge.f64_check import WideRelation
from hlotool.replay.judge.judgement import Leaf
from hlotool.replay.judge.stale_values import SourceFinder

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


@dataclass(frozen=True, slots=True, eq=False)
class Explainer:
    """Makes the comparison of one leaf, by what is known of it.

    Attributes:
        leaf: that is judged.
        executions: of both sides.
        wide: what both programs show in f64; None where there is but one, or no float matters.
        found: how the leaf stands to legal executions; None where nothing is rounded on the way to it.
    """

    leaf: Leaf
    executions: Executions
    wide: WideRelation | None
    found: Finding | None

    def rounding(self) -> LeafComparison:
        """As far off as legal executions are."""
        return self._said(Verdict.ROUNDING, legal_reason(self._known, self.leaf.facts))

    def flipping(self) -> LeafComparison:
        """A few elements that larger errors flip, too."""
        return self._said(Verdict.ROUNDING, flipping_reason(int(self._known.beyond.sum())))

    def less_stable(self) -> LeafComparison:
        """The tested program means the same and rounds in other places."""
        return self._said(Verdict.ROUNDING, LESS_STABLE)

    def unstable(self) -> LeafComparison:
        """Legal executions differ too much; names the instruction that makes them do so."""
        reason = unstable_reason(self._known, self.leaf.facts)
        return self._said(Verdict.UNSTABLE, reason, amplifying_instruction(self.executions.reference))

    def range(self) -> LeafComparison:
        """Too large or too small on the way, on one side; names the instruction that overflows."""
        overflowing = self.executions.reference.overflow()
        origin = None if overflowing is None else origin_of(overflowing)
        return self._said(Verdict.RANGE, range_reason(self._known.misplaced, origin), overflowing)

    def wrong(self) -> LeafComparison:
        """Nothing legal explains it, unless a known departure of XLA's does; names the pattern."""
        rule = self.executions.departures.explaining(self.leaf)
        if rule is not None:
            reason = f"XLA {rule.text} ({rule.id}), and with that rule the reference returns the same"
            return self._said(Verdict.SEMANTICS, reason, rule=rule.id)
        flags = self._wrong_elements()
        pattern = self._pattern(flags) if flags.any() else None
        kind, detail = (pattern.kind, pattern.text) if pattern is not None else ("", "")
        evidence = replace(self._evidence(), beyond=int(flags.sum()), pattern=kind, detail=detail)
        reason = wrong_reason(evidence, self.found)
        return dataclasses.replace(
            self.leaf.compared, verdict=Verdict.WRONG, reason=reason, evidence=evidence
        )

    def _said(
        self, verdict: Verdict, reason: str, instruction: Instruction | None = None, rule: str = ""
    ) -> LeafComparison:
        module = self.executions.judgement.reference.module
        source = None if instruction is None else source_of(module, [instruction])
        evidence = replace(self._evidence(), instruction=source, rule=rule)
        return self._with(verdict, reason, evidence)

    def _with(self, verdict: Verdict, reason: str, evidence: EvidenceRecord) -> LeafComparison:
        return dataclasses.replace(self.leaf.compared, verdict=verdict, reason=reason, evidence=evidence)

    def _evidence(self) -> EvidenceRecord:
        """What is known before it is said why."""
        found = self.found
        return EvidenceRecord(
            seed=self.executions.judgement.seed,
            members=found.members if found is not None else 0,
            statistic=found.statistic if found is not None else "",
            ratio=finite_or_none(found.ratio) if found is not None else 0.0,
            score=finite_or_none(found.worst_score) if isinstance(found, Score) else 0.0,
            width=finite_or_none(found.width) if isinstance(found, Score) else 0.0,
            wide=self.wide.value if self.wide is not None else "",
        )

    @property
    def _known(self) -> Finding:
        """How the leaf stands to legal executions, for verdicts that rest on them."""
        assert self.found is not None
        return self.found

    def _wrong_elements(self) -> npt.NDArray[np.bool_]:
        """Those out of reach; all unequal ones where only their sum is."""
        if self.found is not None and self.found.beyond.any():
            return self.found.beyond
        unequal: npt.NDArray[np.bool_] = np.not_equal(self.leaf.expected, self.leaf.actual).reshape(-1)
        return unequal

    def _pattern(self, flags: npt.NDArray[np.bool_]) -> Pattern | None:
        width = self.found.width if isinstance(self.found, Score) else 0.0
        tolerance = _tolerance(self.leaf.shape.element_type, width)
        gap = difference(self.leaf.expected, self.leaf.actual, flags, tolerance)
        return recognise(gap, FIRST_TESTS) or self._from_other_values(gap) or recognise(gap, LAST_TESTS)

    def _from_other_values(self, gap: Difference) -> Pattern | None:
        """Another result, or a value on the way, in place of the right one."""
        for other, value in enumerate(self.executions.expected):
            if other == self.leaf.number or value.shape != gap.actual.shape or value.size == 1:
                continue
            if gap.explains(difference(value, value, gap.wrong, 0).expected):
                return Pattern("swap", f"the values are those of output number {other}")
        finder = SourceFinder(gap)
        try:
            self.executions.reference.watch_reference(finder)
        except HlotoolError:
            return None
        return finder.addend or finder.stale


def _tolerance(element_type: ElementType, width: float) -> float:
    """Relative error within which a pattern's values are the wrong ones."""
    if not element_type.is_inexact:
        return 0.0
    is_narrow = element_type.is_narrow_float
    ulps = thresholds.PATTERN_NARROW_ULPS if is_narrow else thresholds.PATTERN_ULPS
    return max(ulps.value * epsilon(element_type), thresholds.PATTERN_WIDTHS.value * width)
