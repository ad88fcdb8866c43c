"""The verdict on a result: is it one more legal execution of the program, and if not, what is wrong with it?

Cheap evidence comes first. Equal bits and differences of a few ulps settle most outputs. For the others an
ensemble of legal executions is drawn (`ensemble`), and the result is compared with what they differ by
(`numerics.exchangeability`, `numerics.flips`). Where the tested side is a program, too, both are executed in
f64: rewrites that are right then agree far below what the declared types show (`wide`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.findings.verdict import Verdict
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType, leaves
from hlotool.numerics.compare import compare_values, part_at
from hlotool.numerics.dataflow import join_leaves, leaf_facts
from hlotool.numerics.exchangeability import Score, score
from hlotool.numerics.facts import Facts
from hlotool.numerics.flips import Flips, flips
from hlotool.numerics.tolerance import few_ulps
from hlotool.numerics.ulp import epsilon
from hlotool.numerics.verdict import Comparison, LeafComparison, aggregate
from hlotool.replay.judge.ensemble import Clock, Ensemble, Side, array_leaves, side_of
from hlotool.replay.judge.explaining import Case, Explainer
from hlotool.replay.judge.f64_check import Wide, WideRelation, coarsest, is_moderate, stay_finite
from hlotool.replay.judge.semantics import Departures

#: A result is wrong when its statistic is so many times what legal executions have.
LIMIT = 3.0
#: Below this the first members settle it.
_CLEAR = 1.0
#: Sizes of the ensemble, the reference not counted: it grows where the answer is near the limit.
_SIZES = (4, 8, 16)
#: Ratios from here on need no larger ensemble.
_CERTAIN = 100.0
#: An ensemble is unstable when its spread is this many times the square root of an ulp, or this large at all.
_UNSTABLE, _WIDEST = 8.0, 0.25
#: Integers are unstable when legal executions differ on more than this share of them.
_UNSTABLE_SHARE = 0.05
#: How much larger errors are made to see what flips, and the share of elements that flips may explain.
_LOUDER, _FEW = 16.0, 0.02
#: Where such errors cannot reach a score by growing in proportion, it takes flips: more of them are legal.
_NOT_LINEAR, _MANY = 64.0, 0.5
#: One ulp at 1 of types that hide faults.
_COARSE = 2.0**-11
#: Relative error of a value that was saved from an overflow.
_SAVED = 1e-3


def judge(
    reference: Module,
    arguments: Sequence[Value],
    expected: Value | None,
    actual: Value,
    *,
    tested: Module | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
) -> Comparison:
    """Judge what a tested execution of a program returned.

    Pure, in this process, and the same for the same arguments. Programs are for one device; `hlotool run`
    judges programs for several devices by `judge_sides`.

    Args:
        reference: the program as it should be, such as the module before optimizations.
        arguments: one value per entry parameter.
        expected: what the numpy backend returns for `reference`; None has it computed.
        actual: the result in question, of the same shape: of another program, another backend, or captured.
        tested: the program that gave `actual`, where that is HLO of its own (after a pass, say) and not
            `reference` itself. It takes the same arguments.
        seed: of the ensemble.
        rtol: with `atol`, plain tolerances instead of an ensemble.
        atol: see `rtol`.

    Returns:
        a verdict with reasons for the whole and for each leaf.

    Raises:
        Unsupported: the numpy backend cannot execute `reference`.
        InputDataError: the arguments do not fit.
    """
    if expected is None:
        expected = NumpyBackend().compile(reference).run(arguments)
    other = None if tested is None else side_of(tested, arguments)
    facts = leaf_facts(reference)
    if tested is not None:
        facts = join_leaves(facts, leaf_facts(tested))
    return judge_sides(
        side_of(reference, arguments),
        expected,
        actual,
        tested=other,
        facts=facts,
        seed=seed,
        rtol=rtol,
        atol=atol,
    )


def judge_sides(
    reference: Side,
    expected: Value,
    actual: Value,
    *,
    tested: Side | None = None,
    facts: Sequence[Facts],
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    deadline: float = math.inf,
    product_unit: float = 0.0,
) -> Comparison:
    """As `judge`, of programs that know how to be executed.

    Args:
        reference: the program as it should be.
        expected: its result.
        actual: the result in question.
        tested: the program that gave it, where that is another one.
        facts: of the leaves, joined over both sides.
        seed: of the ensemble.
        rtol: with `atol`, plain tolerances.
        atol: see `rtol`.
        deadline: in `time.monotonic`: from then on no execution begins, and a bound decides.
        product_unit: one ulp at 1 of the type in which the hardware that gave `actual` multiplies f32 where
            the program asks for no more; 0 for f32 itself.
    """
    plain = rtol is not None or atol is not None
    quick = compare_values(
        reference.shape,
        expected,
        actual,
        actual_shape=tested.shape if tested is not None else None,
        facts=facts,
        rtol=rtol,
        atol=atol,
        derived=few_ulps,
    )
    if plain or (quick.verdict is Verdict.STRUCTURAL and len(quick.leaves) == 1):
        return quick
    return _Judge(reference, tested, expected, actual, facts, seed, deadline, product_unit).settle(quick)


class _Judge:
    """Settles the leaves that a quick look leaves open."""

    def __init__(
        self,
        reference: Side,
        tested: Side | None,
        expected: Value,
        actual: Value,
        facts: Sequence[Facts],
        seed: int,
        deadline: float,
        product_unit: float,
    ) -> None:
        self._facts = facts
        self._product_unit = product_unit
        self._shapes = [part for _, part in leaves(reference.shape)]
        self._numbers = {index: number for number, (index, _) in enumerate(leaves(reference.shape))}
        self._expected = array_leaves(reference.shape, expected)
        self._actual = [np.asarray(part_at(actual, index)) for index, _ in leaves(reference.shape)]
        clock = Clock(deadline)
        self._ensemble = Ensemble(reference, seed, clock=clock, product_unit=product_unit)
        self._louder = Ensemble(reference, seed + 1, _LOUDER, clock, product_unit)
        self._tested = None if tested is None else Ensemble(tested, seed, clock=clock)
        self._wide = None if self._tested is None else Wide(self._ensemble, self._tested)
        self._explain = Explainer(
            self._ensemble, self._shapes, self._expected, self._actual, facts, seed, Departures(reference)
        )

    def settle(self, quick: Comparison) -> Comparison:
        """The comparison with every open leaf judged."""
        return aggregate([self._settled(leaf) for leaf in quick.leaves])

    def _settled(self, leaf: LeafComparison) -> LeafComparison:
        number = self._numbers.get(leaf.index)
        if number is None or leaf.metrics is None or leaf.verdict not in (Verdict.AGREE, Verdict.WRONG):
            return leaf
        if leaf.verdict is Verdict.AGREE and not self._deserves_a_second_look(number):
            return leaf
        wide = self._relation(number)
        if leaf.verdict is Verdict.AGREE and wide is not WideRelation.OUTSIDE:
            return leaf
        case = Case(leaf, number, wide)
        try:
            return self._judged(case)
        except (HlotoolError, MemoryError) as error:
            return self._without_ensemble(case, error)

    def _relation(self, number: int) -> WideRelation | None:
        """What both programs show in f64; None where there is but one, or no float matters."""
        shape, facts = self._shapes[number], self._facts[number]
        assert isinstance(shape, ArrayShape)
        if self._wide is None or not (shape.element_type.is_inexact or facts.decision is not None):
            return None
        return self._wide.relation(number)

    def _deserves_a_second_look(self, number: int) -> bool:
        """An ulp of a narrow type hides a lot: what the programs mean decides, where both are at hand."""
        rounding = self._facts[number].rounding
        return self._wide is not None and rounding is not None and rounding.epsilon >= _COARSE

    def _judged(self, case: Case) -> LeafComparison:
        shape = self._shapes[case.number]
        assert isinstance(shape, ArrayShape)
        if shape.element_type.is_inexact:
            return self._float(case, shape.element_type)
        return self._exact(case)

    def _float(self, case: Case, element_type: ElementType) -> LeafComparison:
        found = self._score(case.number, element_type)
        if case.wide is WideRelation.OUTSIDE:
            return self._explain.wrong(case, found)
        if found.misplaced:
            return self._misplaced(case, found)
        if found.ratio <= LIMIT:
            if found.width > self._unstable_width(case.number, element_type):
                return self._explain.unstable(case, found)
            return self._explain.rounding(case, found)
        if self._flips_when_louder(case.number, found):
            return self._explain.flipping(case, found)
        means_the_same = case.wide in (WideRelation.EQUAL, WideRelation.WITHIN)
        if means_the_same and self._is_less_stable(case.number, element_type, found):
            return self._explain.less_stable(case, found)
        return self._explain.wrong(case, found)

    def _unstable_width(self, number: int, element_type: ElementType) -> float:
        """How far executions may be apart for the coarsest rounding on the way."""
        rounding = self._facts[number].rounding
        unit = max(
            epsilon(element_type), rounding.epsilon if rounding is not None else 0.0, self._product_unit
        )
        return min(_UNSTABLE * math.sqrt(unit), _WIDEST)

    def _score(self, number: int, element_type: ElementType) -> Score:
        """Against an ensemble that grows while the answer is near the limit."""
        actual = self._actual[number]
        found = score(actual, self._members(number, _SIZES[0]), element_type)
        for size in _SIZES:
            if found.ratio <= _CLEAR:
                break
            shadow = self._ensemble.shadow[number]
            known = shadow if shadow.shape == actual.shape else None
            found = score(actual, self._members(number, size), element_type, known)
            if _CERTAIN < found.ratio < math.inf:
                break
        return found

    def _exact(self, case: Case) -> LeafComparison:
        """Integers and preds: exact, unless floats decide about them."""
        number = case.number
        if self._facts[number].decision is None:
            return self._explain.wrong(case, None)
        for size in _SIZES:
            found = flips(self._actual[number], self._members(number, size))
            if found.ratio <= _CLEAR:
                break
        if case.wide is WideRelation.OUTSIDE:
            return self._explain.wrong(case, found)
        if found.ratio > LIMIT:
            reached = self._reached_when_louder(number, found)
            return self._explain.flipping(case, found) if reached else self._explain.wrong(case, found)
        if found.varied > _UNSTABLE_SHARE * self._actual[number].size:
            return self._explain.unstable(case, found)
        return self._explain.rounding(case, found)

    def _members(self, number: int, size: int) -> list[Array]:
        """The reference and so many others."""
        return [self._expected[number], *(m[number] for m in self._ensemble.members(size))]

    def _flips_when_louder(self, number: int, found: Score) -> bool:
        """Whether the few elements that are out of reach flip when every error is larger.

        A comparison that is nearly a tie flips in one execution out of many, and then a few elements are far
        off. Errors that are several times as large make it flip more often.
        """
        beyond = found.beyond
        if self._rounds_coarser:
            return False
        if not beyond.any() or beyond.mean() > (_MANY if found.worst_score > _NOT_LINEAR else _FEW):
            return False
        centre = self._expected[number].reshape(-1)[beyond]
        with np.errstate(all="ignore"):
            needed = np.abs(self._actual[number].reshape(-1)[beyond] - centre) / 2
            reached = np.zeros(needed.shape, np.bool_)
            for member in self._louder.members(_SIZES[1]):
                reached |= np.abs(member[number].reshape(-1)[beyond] - centre) >= needed
        return bool(reached.all())

    def _reached_when_louder(self, number: int, found: Flips) -> bool:
        """The same for integers: every new value is within what larger errors span."""
        if self._rounds_coarser:
            return False
        if found.new.mean() > _FEW and found.new.size > 1 / _FEW:
            return False
        louder = [m[number] for m in self._louder.members(_SIZES[1])]
        return not flips(self._actual[number], [*self._members(number, _SIZES[-1]), *louder]).count

    def _is_less_stable(self, number: int, element_type: ElementType, reference: Score) -> bool:
        """Whether the tested program means the same, in the same types, but spreads its rounding further."""
        if self._tested is None or self._rounds_coarser:
            return False
        own = [m[number] for m in self._tested.members(_SIZES[0])]
        if not stay_finite(own, self._expected[number]):
            return False
        found = score(self._expected[number], [self._actual[number], *own], element_type)
        return found.ratio <= LIMIT and is_moderate(found, reference, self._tested.side.module)

    @cached_property
    def _rounds_coarser(self) -> bool:
        """Whether the tested program rounds somewhere to less than the reference ever does: no excuse."""
        if self._tested is None:
            return False
        return coarsest(self._tested.side.module) > coarsest(self._ensemble.side.module)

    def _misplaced(self, case: Case, found: Score) -> LeafComparison:
        """NaN or infinite on one side only: overflow on the way, or a fault."""
        is_range = (
            (
                case.wide in (WideRelation.EQUAL, WideRelation.WITHIN)
                and self._is_the_programs_own(case.number)
            )
            or (case.wide is WideRelation.RANGE and self._overflows_in_f64(case.number))
            or (case.wide is None and self._avoids_overflow(case.number))
        )
        return self._explain.range(case, found) if is_range else self._explain.wrong(case, found)

    def _is_the_programs_own(self, number: int) -> bool:
        """Whether the tested program has its NaN and infinities there, and not only what executed it."""
        assert self._tested is not None
        actual = np.isfinite(self._actual[number])
        differ = actual != np.isfinite(self._expected[number])
        members = (np.isfinite(m[number]) for m in self._tested.members(_SIZES[0]))
        return any(bool((m == actual)[differ].all()) for m in members)

    def _overflows_in_f64(self, number: int) -> bool:
        """Whether the reference has too large a number on the way, even for f64; the tested side has not."""
        assert self._tested is not None
        expected, actual = (np.isfinite(side.shadow[number]) for side in (self._ensemble, self._tested))
        if (expected & ~actual).any():
            return False
        return self._ensemble.overflow(wide=True) is not None

    def _avoids_overflow(self, number: int) -> bool:
        """Whether the result is finite, and right, where the reference overflows on the way."""
        expected, actual = self._expected[number], self._actual[number]
        shadow = self._ensemble.shadow[number]
        if shadow.shape != actual.shape:
            return False
        with np.errstate(all="ignore"):
            wide = actual.astype(shadow.dtype)
            saved = ~np.isfinite(expected) & np.isfinite(wide) & np.isfinite(shadow)
            close = np.abs(wide - shadow) <= _SAVED * np.abs(shadow)
        misplaced = np.isfinite(expected) != np.isfinite(wide)
        return bool(saved.any() and close[saved].all() and (saved == misplaced).all())

    def _without_ensemble(self, case: Case, error: Exception) -> LeafComparison:
        """The bound of an analysis, where the program cannot be executed in other ways."""
        number = case.number
        shape = self._shapes[number]
        plain = compare_values(
            shape, self._expected[number], self._actual[number], facts=[self._facts[number]]
        )
        reason = f"{plain.reason}; no ensemble: {error}"
        return replace(plain.leaves[0], index=case.leaf.index, reason=reason)
