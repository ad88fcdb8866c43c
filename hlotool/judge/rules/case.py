"""One leaf that a comparison of values does not settle: what is known of it, and what can be said for it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from hlotool.facts import thresholds
from hlotool.facts.dataflow import source_of
from hlotool.facts.exchangeability import Score, score
from hlotool.facts.float_order import epsilon
from hlotool.facts.result_facts import origin_of
from hlotool.ir.module import Instruction
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.reasons import (
    LESS_STABLE,
    Finding,
    amplified_reason,
    cancelled_reason,
    cancelling,
    flipping_reason,
    legal_reason,
    named,
    range_reason,
    unstable_reason,
    wrong_reason,
)
from hlotool.judge.records import EvidenceRecord
from hlotool.judge.rules.excuses import RangeCause
from hlotool.judge.rules.executions import Executions
from hlotool.judge.rules.f64_check import WideRelation
from hlotool.judge.rules.instability import Cancellation
from hlotool.judge.rules.judgement import Leaf
from hlotool.judge.rules.semantics import Rule
from hlotool.judge.verdicts import Verdict
from hlotool.system.records import finite_or_none


class Case(Struct, frozen=True, eq=False):
    """One leaf in question.

    Attributes:
        leaf: that is judged.
        executions: of both sides.
        wide: what both programs show in f64; None where there is but one, or no float matters.
        found: how the leaf stands to legal executions: to those in f64 where the programs differ there; None
            where nothing is rounded on the way to it.
        because: what is known to make it wrong; empty where the values have to say it.
    """

    leaf: Leaf
    executions: Executions
    wide: WideRelation | None
    found: Finding | None
    because: str = ""

    @property
    def known(self) -> Finding:
        """How the leaf stands to legal executions, for verdicts that rest on them."""
        assert self.found is not None
        return self.found

    def rounding(self) -> LeafComparison:
        """As far off as legal executions are."""
        return self._said(Verdict.ROUNDING, self._with_freedom(legal_reason(self.known, self.leaf.facts)))

    def flipping(self) -> LeafComparison:
        """A few elements that larger errors flip, too."""
        metrics = self.leaf.compared.metrics
        jumping = int(self.known.beyond.sum())
        differing = metrics.unequal if metrics is not None else jumping
        return self._said(Verdict.ROUNDING, self._with_freedom(flipping_reason(jumping, differing)))

    def less_stable(self) -> LeafComparison:
        """The tested program means the same and rounds in other places."""
        return self._said(Verdict.ROUNDING, LESS_STABLE)

    def cancelled(self, found: Cancellation) -> LeafComparison:
        """Legal executions differ because terms of a sum cancel; names it, and what is made of its error."""
        rest = ""
        if found.origin is not None and found.noted is not None:
            noted = found.noted
            rest = cancelling(noted.terms, noted.value, noted.noise, self._named(found.origin))
        maker = "" if found.maker is None else self._named(found.maker)
        decided = found.elements, self.leaf.actual.size, found.spread
        reason = cancelled_reason(self.known, decided, rest, maker)
        said = self._said(Verdict.ROUNDING, self._with_freedom(reason), found.origin)
        assert said.evidence is not None
        cancelled = f"cancellation: {rest or 'terms of several sums cancel'}"
        happened = "; ".join(filter(None, [cancelled, said.evidence.happened]))
        evidence = replace(said.evidence, cancelled=found.elements, happened=happened)
        return replace(said, evidence=evidence)

    def amplified(self) -> LeafComparison:
        """Legal executions differ too much in the declared types; in f64 both programs are the same."""
        reason = self._with_freedom(amplified_reason(self.known))
        return self._said(Verdict.ROUNDING, reason, self.executions.amplifier)

    def unstable(self) -> LeafComparison:
        """Legal executions differ too much; names the instruction that makes them do so."""
        amplifier, rounding = self.executions.amplifier, self.leaf.facts.rounding
        where = "" if amplifier is None else self._named(amplifier)
        unit = max(epsilon(self.leaf.shape.element_type), 0.0 if rounding is None else rounding.epsilon)
        reason = unstable_reason(self.known, self.leaf.facts, unit, where)
        return self._said(Verdict.UNSTABLE, self._with_freedom(reason), amplifier)

    def range(self, cause: RangeCause) -> LeafComparison:
        """Too large or too small on the way, on one side; names the instruction that overflows."""
        overflowing = self.executions.reference.overflow() if cause.names_overflow else None
        origin = None if overflowing is None else origin_of(overflowing)
        reason = range_reason(0 if self.found is None else self.found.misplaced, cause.reason, origin)
        return self._said(Verdict.RANGE, reason, overflowing)

    def accused(self) -> LeafComparison | Case:
        """The case itself, for nothing legal explains it, unless a known departure of XLA's does."""
        # Where nothing is rounded, nothing is denormal, either: no execution tells what f64 tells apart.
        is_outside = self.wide is WideRelation.OUTSIDE
        rule = self.executions.departures.explaining(self.leaf, flushes=not is_outside)
        rest = ""
        if rule is None and isinstance(self.found, Score) and not is_outside:
            rule, rest = self._rule_beside_rounding(), ", apart from rounding"
        if rule is None:
            return self
        reason = f"{rule.text} ({rule.id}), and with that rule the reference returns the same{rest}"
        return self._said(Verdict.SEMANTICS, reason, rule=rule.id)

    def _with_freedom(self, reason: str) -> str:
        """What is known to be the cause, the reason, and what executions took into account that the target
        may round besides.
        """
        allowed = self.executions.judgement.freedoms.product.reason
        return "; ".join(filter(None, (self._happened, reason, allowed)))

    @property
    def _happened(self) -> str:
        """What made the difference, where it has a name; empty where it has none."""
        return self.executions.widths.removed(self.leaf) or self.executions.contraction(self.leaf)

    def _named(self, instruction: Instruction) -> str:
        return named(source_of(self.executions.judgement.reference.module, [instruction]))

    def _said(
        self, verdict: Verdict, reason: str, instruction: Instruction | None = None, rule: str = ""
    ) -> LeafComparison:
        module = self.executions.judgement.reference.module
        source = None if instruction is None else source_of(module, [instruction])
        happened = self._happened if verdict is Verdict.ROUNDING else ""
        evidence = replace(self.evidence(), instruction=source, rule=rule, happened=happened)
        return replace(self.leaf.compared, verdict=verdict, reason=reason, evidence=evidence)

    def _rule_beside_rounding(self) -> Rule | None:
        """The known departure that explains some elements, where legal executions explain all others."""
        size = int(thresholds.FIRST_MEMBERS.value)
        for rule, rest in self.executions.departures.in_part(self.leaf):
            left = score(rest, self.executions.members(self.leaf, size), self.leaf.shape.element_type)
            if not left.misplaced and left.ratio <= thresholds.RATIO.value:
                return rule
        return None

    def evidence(self) -> EvidenceRecord:
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
    def severity(self) -> float:
        """How far out it is, if it is wrong: infinite where nothing is rounded."""
        return np.inf if self.found is None else self.found.ratio

    @property
    def misplaced(self) -> int:
        """Elements that are NaN or infinite on one side only."""
        metrics = self.leaf.compared.metrics
        if self.wide is WideRelation.OUTSIDE and metrics is not None:
            return metrics.nan_mismatches + metrics.inf_mismatches
        return 0 if self.found is None else self.found.misplaced

    @property
    def is_hidden(self) -> bool:
        """Whether the declared types hide it in their rounding."""
        return self.leaf.compared.verdict is Verdict.AGREE

    @property
    def elements(self) -> npt.NDArray[np.bool_]:
        """The elements out of reach, flat; all unequal ones where only their sum is."""
        leaf, found = self.leaf, self.found
        unequal: npt.NDArray[np.bool_] = np.not_equal(leaf.expected, leaf.actual).reshape(-1)
        if found is None or not (found.beyond & unequal).any():
            return unequal
        return found.beyond & unequal

    def wrong(self, pattern: tuple[str, str] | None) -> LeafComparison:
        """Nothing legal explains it; `pattern` is kind and detail, None where none was looked for."""
        kind, detail = pattern or ("", "")
        evidence = replace(
            self.evidence(),
            beyond=int(self.elements.sum()),
            pattern=kind,
            detail=detail,
            explained=pattern is not None,
        )
        reason = self.because or wrong_reason(evidence, self.found, self.misplaced, self.is_hidden)
        if self.wide is WideRelation.OUTSIDE and (dropped := self.executions.widths.dropped):
            reason = f"{reason}; {dropped}"
        return replace(self.leaf.compared, verdict=Verdict.WRONG, reason=reason, evidence=evidence)
