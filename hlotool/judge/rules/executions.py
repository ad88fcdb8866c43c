"""What one judgement draws on, each when it is asked for: executions, and exact equality of programs.

Are both programs the same function of real numbers? `runs.exact` compares programs, and never what some
hardware made of one. So it is asked only where both results come from the reference's interpreter running
two texts: of code that a backend generated, and of captured results, equal texts say nothing.

It does not see what is no property of real numbers: roundings (a narrower type, a sum of squares less the
square of a sum), overflow and NaN, ties, signs of zero. Integers and the branches that are taken it sees
only at the points that were drawn. And what it calls unequal may rest on a law that it does not know. What
no point covered (`exact.sides`) the reason names, and says no more than that. Hence:

1. It makes nothing `wrong`. Other functions that are as close as legal executions are `differs`;
   `wrong` needs an ensemble that does not reach the result.
2. What is out of reach of legal executions stays `wrong` if the programs are equal, and the reason says
   so: they mean the same, and the way in which one computes it loses the digits. Only where the dump's
   flags say `enable_fast_math` that way is allowed: LLVM regroups sums as if nothing were rounded, and the
   error of a sum, (a + b) - a - b, becomes 0.
3. Where legal executions span so much that nothing can be said, equality says it: `unstable` becomes
   `rounding`; unless the tested program rounds to a coarser type, and after more points where comparisons
   or steps decide.
4. It stands in place of no ensemble. What needs one rounds to narrow types or decides by comparisons, in
   programs as they are found, and just there equality says too little.
5. NaN and infinities on one side (`range`) are a matter of values, whatever the programs mean.

A user who wants the same function and not only close values (`--exact`) gets `unequal` in place of any
verdict that does not accuse, of equal bits, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from hlotool.errors import HlotoolError
from hlotool.facts import thresholds
from hlotool.facts.dataflow import leaf_facts
from hlotool.facts.retyping import precisions
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ShapeIndex, leaves
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.reasons import (
    excusing_reason,
    harmful_reason,
    other_function_reason,
    regrouped_reason,
    same_function_reason,
    unexcused_reason,
)
from hlotool.judge.records import EqualityRecord, EvidenceRecord
from hlotool.judge.rules.ensemble import KEEPS, Clock, Ensemble, array_leaves
from hlotool.judge.rules.f64_check import Wide, coarsest
from hlotool.judge.rules.instability import Cancellations, amplifying_instruction
from hlotool.judge.rules.judgement import Judgement, Leaf, Side
from hlotool.judge.rules.lost_width import Widths
from hlotool.judge.rules.products import contracted_text
from hlotool.judge.rules.semantics import Departures
from hlotool.judge.verdicts import DIFFERING, Verdict
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, spend, work_limit

if TYPE_CHECKING:
    from hlotool.runs.exact.result import ExactResult, LeafResult


#: Verdicts of what is as close as the same function may be, and of what this room has something to say.
_CLOSE = frozenset({Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING})
_IN_QUESTION = frozenset({Verdict.AGREE, Verdict.ROUNDING, Verdict.UNSTABLE})


#: What f64 makes of what legal executions in f32 differ by, with a margin of 32.
_F64_NOISE: Final = 2.0**-24
#: One-sided decisions that a reason names.
_SHOWN: Final = 2


class Equality:
    """What exact arithmetic says of the two programs of a judgement, asked when somebody wants to know.

    Args:
        judgement: whose programs are compared.
        clock: of all that the judgement executes.
    """

    def __init__(self, judgement: Judgement, clock: Clock) -> None:
        self._judgement = judgement
        self._clock = clock

    def of(self, leaf: Leaf) -> EqualityRecord | None:
        """What is known of a leaf; None where nothing may be said."""
        return None if self._first is None else self._first.get(leaf.compared.index)

    @cached_property
    def _first(self) -> dict[ShapeIndex, EqualityRecord] | None:
        return self._asked(int(thresholds.EXACT_TRIALS.value))

    @cached_property
    def _again(self) -> dict[ShapeIndex, EqualityRecord] | None:
        return self._asked(int(thresholds.MOST_POINTS.value))

    def _asked(self, trials: int) -> dict[ShapeIndex, EqualityRecord] | None:
        """The answer for each leaf."""
        judgement = self._judgement
        if judgement.compare_exactly is None:
            return None
        share = thresholds.EXACT_SHARE.value
        work = share * self._clock.work_left
        if not judgement.exact:
            work = min(work, thresholds.EXACT_SECONDS.value * UNITS_PER_SECOND)
        try:
            with work_limit(work):
                result = judgement.compare_exactly(share * (judgement.deadline - time.monotonic()), trials)
        except TooMuchWork:
            spend(0)  # raises again where somebody else's limit is reached
            return self._refused("it is too much work")
        if reason := result.refused or result.structural:
            return self._refused(reason)
        return {leaf.index: _record(leaf, result) for leaf in result.leaves}

    def _refused(self, reason: str) -> dict[ShapeIndex, EqualityRecord]:
        refused = EqualityRecord(relation="refused", reason=reason)
        return dict.fromkeys((index for index, _ in leaves(self._judgement.reference.shape)), refused)

    def _weighed_unstable(self, leaf: Leaf, said: LeafComparison, found: EqualityRecord) -> LeafComparison:
        """What is said of a leaf of which legal executions say nothing, and which is the same function."""
        tested = self._judgement.tested
        if tested is None or coarsest(tested.module) > coarsest(self._judgement.reference.module):
            reason = unexcused_reason(found, "rounded more coarsely", said.reason)
            return replace(said, reason=reason, exact=found)
        decides = leaf.facts.decision is not None or not leaf.is_inexact
        if decides and found.trials < thresholds.MOST_POINTS.value and self._again is not None:
            again = self._again[leaf.compared.index]
            if again.relation == "unequal":
                return replace(said, reason=other_function_reason(again, said), exact=again)
            if again.relation == "refused":
                why = f"at too few points for what comparisons decide: {again.reason}"
                return replace(said, reason=unexcused_reason(found, why, said.reason), exact=found)
            found = again
        reason = excusing_reason(found, said.reason)
        return replace(said, verdict=Verdict.ROUNDING, reason=reason, exact=found)

    def weighed(self, outputs: Sequence[Leaf], said: Sequence[LeafComparison]) -> list[LeafComparison]:
        """What is said of every leaf once more, with what the programs mean.

        Args:
            outputs: the leaves of the result.
            said: of each, by its values and by legal executions.
        """
        if self._judgement.compare_exactly is None:
            return list(said)
        if self._judgement.exact:
            return [self._demanded(self._weighed(leaf, one)) for leaf, one in zip(outputs, said)]
        # Once a leaf is wrong, so is the program, and what it means where it is right is not worth the time.
        is_wrong = any(one.verdict in DIFFERING for one in said)
        return [
            self._weighed(leaf, one) if self._is_regrouped(one) or _is_of_use(one, is_wrong) else one
            for leaf, one in zip(outputs, said)
        ]

    def _is_regrouped(self, said: LeafComparison) -> bool:
        """Whether a compiler that was allowed to regroup sums may have made this difference."""
        return said.verdict is Verdict.WRONG and bool(self._judgement.freedoms.regrouping)

    def _weighed(self, leaf: Leaf, said: LeafComparison) -> LeafComparison:
        found = self.of(leaf)
        if found is None or found.relation == "refused":
            return replace(said, exact=found)
        if found.relation == "unequal":
            verdict = _of_other_functions(found, said)
            return replace(said, verdict=verdict, reason=other_function_reason(found, said), exact=found)
        if said.verdict is Verdict.UNSTABLE:
            return self._weighed_unstable(leaf, said, found)
        if self._is_regrouped(said) and leaf.is_inexact and found.relation == "equal":
            reason = regrouped_reason(found, self._judgement.freedoms.regrouping)
            return replace(said, verdict=Verdict.ROUNDING, reason=reason, exact=found)
        if said.verdict is Verdict.WRONG:
            return replace(said, reason=harmful_reason(found, said.reason), exact=found)
        return replace(said, reason=same_function_reason(found, said.reason), exact=found)

    def _demanded(self, said: LeafComparison) -> LeafComparison:
        """The verdict where nothing but the same function will do."""
        is_unequal = said.exact is not None and said.exact.relation == "unequal"
        if not is_unequal or said.verdict in DIFFERING | {Verdict.NOT_COMPARABLE}:
            return said
        return replace(said, verdict=Verdict.UNEQUAL)


def _of_other_functions(found: EqualityRecord, said: LeafComparison) -> Verdict:
    """The verdict on a leaf that is another function: f64 may show it at the inputs at hand.

    Where terms cancel to nothing, what is made of the rest is noise in f64 as well; elsewhere noise is as
    much less as f64 is finer.
    """
    if said.verdict not in _CLOSE:
        return said.verdict
    evidence = said.evidence
    noise = _F64_NOISE * ((evidence and evidence.width) or 0.0)
    is_apart = found.apart > max(noise, thresholds.APART_IN_F64.value)
    is_noise = evidence is not None and evidence.cancelled > 0
    return Verdict.UNEQUAL if is_apart and not is_noise else Verdict.DIFFERS


def _is_of_use(said: LeafComparison, is_wrong: bool) -> bool:
    """Whether a user learns anything from what the programs mean; `is_wrong`: some leaf is."""
    if said.verdict is Verdict.WRONG:
        return said.evidence is not None and not _is_clear(said.evidence)
    return said.verdict in _IN_QUESTION and not is_wrong


def _is_clear(evidence: EvidenceRecord) -> bool:
    """Whether the programs mean different things for certain: lost digits alone are not that far off."""
    if not evidence.members:
        return True
    ratio = math.inf if evidence.ratio is None else evidence.ratio
    return evidence.wide == "outside" and ratio > thresholds.CERTAIN_IN_F64.value


def _record(leaf: LeafResult, result: ExactResult) -> EqualityRecord:
    one_sided = result.not_covered
    is_partly = result.is_equal and bool(one_sided)
    witness = leaf.witness if result.around and not result.is_equal else None
    return EqualityRecord(
        relation="equal where" if is_partly else leaf.relation.value,
        trials=result.trials,
        differing=leaf.differing,
        total=leaf.total,
        reason="; ".join(map(str, one_sided[:_SHOWN])) if is_partly else leaf.reason,
        around=0.0 if witness is None else result.around,
        seed=None if witness is None else witness.seed,
        apart=0.0 if result.is_equal else leaf.apart,
    )


class OfReference:
    """What is executed of the reference, whatever result is compared with it.

    Args:
        side: the reference.
        seed: of the executions.
        unit: see `Ensemble`, and what else an ensemble is drawn with.

    Attributes:
        executions: of the side.
        louder: the same with larger errors.
        cancellations: what they explain.
    """

    def __init__(self, side: Side, seed: int, unit: float, **drawn: Any) -> None:
        self.executions = Ensemble(side, seed, product_unit=unit, **drawn)
        loudness = thresholds.LOUDER.value
        self.louder = Ensemble(side, seed + 1, loudness, product_unit=unit, **drawn)
        self.cancellations = Cancellations(self.executions)

    @cached_property
    def amplifier(self) -> Instruction | None:
        """The instruction that amplifies rounding most; None where it cannot be watched."""
        return amplifying_instruction(self.executions)


class Executions:
    """Legal executions of both sides.

    Args:
        judgement: whose programs are executed.

    Attributes:
        judgement: likewise.
        reference: executions of the reference.
        louder: the same with larger errors.
        tested: of the tested program; None where there is none.
        wide: compares both programs in f64; None likewise.
        widths: what only one of both programs rounds.
        cancellations: of the reference: what they explain.
        departures: of the reference under known rules.
        equality: of both programs as functions of real numbers.
    """

    def __init__(self, judgement: Judgement) -> None:
        seed, freedoms = judgement.seed, judgement.freedoms
        clock = Clock(judgement.deadline, judgement.work)
        self.judgement = judgement
        asked = precisions(judgement.reference.module)
        keeps = KEEPS if freedoms.excess_precision else (0.0,)
        drawn: dict[str, Any] = {
            "clock": clock,
            "asked": asked,
            "keeps": keeps,
            "f64_unit": freedoms.f64_unit,
        }
        side, unit = judgement.reference, freedoms.product.unit
        key = OfReference, seed, unit, keeps, freedoms.f64_unit
        if key not in side.kept:
            side.kept[key] = OfReference(side, seed, unit, **drawn)
        self._of_reference: OfReference = side.kept[key]
        self.reference: Ensemble = self._of_reference.executions
        self.louder: Ensemble = self._of_reference.louder
        self.reference.clock = self.louder.clock = clock
        self.tested = None if judgement.tested is None else Ensemble(judgement.tested, seed, **drawn)
        self.wide = None if self.tested is None else Wide(self.reference, self.tested)
        self.widths = Widths(self.reference, self.tested, freedoms)
        self.cancellations: Cancellations = self._of_reference.cancellations
        self.departures = Departures(judgement)
        self.equality = Equality(judgement, clock)
        self._units: dict[Side, list[float]] = {}

    def members(self, leaf: Leaf, size: int) -> list[Array]:
        """A leaf of the reference's result and of so many other executions of the reference."""
        return [leaf.expected, *(member[leaf.number] for member in self.reference.members(size))]

    def truth(self, leaf: Leaf) -> Array | None:
        """A leaf in f64, nothing perturbed; None where it has another size there."""
        shadow = self.reference.shadow[leaf.number]
        return shadow if shadow.shape == leaf.actual.shape else None

    def contraction(self, leaf: Leaf) -> str:
        """That products contracted into sums make the difference, in words; empty where they do not."""
        if self.tested is not None or not leaf.is_inexact:
            return ""
        with suppress(HlotoolError):
            for other in self.reference.contractions:
                if other[leaf.number].tobytes() == leaf.actual.tobytes():
                    return contracted_text(self.judgement.reference.module)
        return ""

    @cached_property
    def expected(self) -> list[Array]:
        """All leaves of the reference's result."""
        return array_leaves(self.judgement.reference.shape, self.judgement.expected)

    @property
    def amplifier(self) -> Instruction | None:
        """See `OfReference`."""
        return self._of_reference.amplifier

    @cached_property
    def rounds_coarser(self) -> bool:
        """Whether the tested program rounds somewhere to less than the reference ever does: no excuse."""
        return self._rounds_coarser_than(0.0)

    @cached_property
    def rounds_coarser_than_target(self) -> bool:
        """The same, where the reference rounds what its products read as the target does."""
        return self._rounds_coarser_than(self.judgement.product_unit)

    def rounds_coarser_at(self, leaf: Leaf) -> bool:
        """Whether the tested program rounds on the way to a leaf to less than the reference does."""
        if self.judgement.tested is None:
            return False
        units = [
            self._units_of(side)[leaf.number] for side in (self.judgement.reference, self.judgement.tested)
        ]
        return units[1] > units[0]

    def _units_of(self, side: Side) -> list[float]:
        """One ulp at 1 of the coarsest rounding on the way to each leaf."""
        if side not in self._units:
            found = (facts.rounding for facts in leaf_facts(side.module))
            self._units[side] = [0.0 if rounding is None else rounding.epsilon for rounding in found]
        return self._units[side]

    def _rounds_coarser_than(self, unit: float) -> bool:
        reference, tested = self.judgement.reference, self.judgement.tested
        return tested is not None and coarsest(tested.module) > max(unit, coarsest(reference.module))
