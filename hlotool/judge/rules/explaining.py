"""What a wrong leaf looks like: the pattern of its errors, a stale buffer, an addend that is lost.

Only the worst few leaves are looked at. A fault early in a training step makes hundreds of outputs wrong:
looking at each of them takes longer than running the program, and shows what the first few show.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from hlotool.backends.base import Value
from hlotool.errors import HlotoolError
from hlotool.facts import patterns, thresholds
from hlotool.facts.exchangeability import Score
from hlotool.facts.float_order import epsilon
from hlotool.facts.patterns import Difference, Pattern, close, difference, recognise
from hlotool.facts.result_facts import origin_of
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ElementType
from hlotool.judge.comparison import LeafComparison
from hlotool.judge.rules.case import Case
from hlotool.judge.rules.executions import Executions
from hlotool.judge.rules.f64_check import WideRelation

#: Leaves whose errors are looked at: as many as reports show in full.
EXPLAINED = 3

#: Patterns by their own shape, the most specific ones first.
FIRST_TESTS = (
    patterns.not_finite,
    patterns.saturation,
    patterns.untouched,
    patterns.sign,
    patterns.constant_factor,
    patterns.off_by_one_row,
    patterns.shift,
    patterns.transpose,
    patterns.reversal,
    patterns.swap,
    patterns.missing_addend,
)
#: Those that explain little.
LAST_TESTS = (patterns.reordered, patterns.narrow_precision, patterns.place)


#: Kind and detail of a pattern; both empty where there is none.
_Found: TypeAlias = tuple[str, str]


def explained(decided: Sequence[LeafComparison | Case], executions: Executions) -> list[LeafComparison]:
    """The comparisons of all leaves, with the patterns of the worst ones (of all in a thorough judgement).

    Args:
        decided: what is said of each leaf, in tuple order; the case where it is wrong.
        executions: of both sides.
    """
    accused = {number: one for number, one in enumerate(decided) if isinstance(one, Case)}
    worst = sorted(accused, key=lambda number: -accused[number].severity)
    chosen = worst if executions.judgement.thorough else worst[:EXPLAINED]
    # What a stale buffer holds, one output shows; where many are wrong, the cause is upstream of them all.
    found = _patterns([accused[number] for number in chosen], executions, looks=chosen == worst)
    patterns_of = dict(zip(chosen, found))
    return [
        one.wrong(patterns_of.get(number)) if isinstance(one, Case) else one
        for number, one in enumerate(decided)
    ]


def _patterns(accused: Sequence[Case], executions: Executions, looks: bool) -> list[_Found]:
    """The pattern of each; `looks` at the values inside of the reference, too."""
    gaps = [_gap(one, executions) for one in accused]
    found = [recognise(gap, FIRST_TESTS) or _other_output(one, gap) for one, gap in zip(accused, gaps)]
    if looks:
        for is_wide in (False, True):
            open_ones = [n for n, one in enumerate(accused) if not found[n] and _is_wide(one) is is_wide]
            finders = {n: SourceFinder(gaps[n]) for n in open_ones if gaps[n].wrong.any()}
            _look(executions, list(finders.values()), is_wide)
            found = [one or (finders[n].pattern if n in finders else None) for n, one in enumerate(found)]
    last = [one or recognise(gap, LAST_TESTS) for one, gap in zip(found, gaps)]
    return [("", "") if one is None else (one.kind, one.text) for one in last]


def _look(executions: Executions, finders: Sequence[SourceFinder], is_wide: bool) -> None:
    """Show them all values of one execution of the reference, if there is time for one."""

    def probe(instruction: Instruction, value: Value) -> None:
        for finder in finders:
            finder(instruction, value)

    if finders:
        with suppress(HlotoolError):
            executions.reference.watch_plainly(probe, is_wide)


def _is_wide(one: Case) -> bool:
    """Whether the values in f64 show the fault alone: in the declared types rounding lies on top of it."""
    return one.wide is WideRelation.OUTSIDE and not one.misplaced


def _gap(one: Case, executions: Executions) -> Difference:
    leaf, found = one.leaf, one.found
    width = found.width if isinstance(found, Score) else 0.0
    if not _is_wide(one):
        tolerance = _tolerance(leaf.shape.element_type, width)
        return difference(leaf.expected, leaf.actual, one.elements, tolerance)
    assert executions.tested is not None
    expected, actual = (side.shadow[leaf.number] for side in (executions.reference, executions.tested))
    kind = ElementType.F32 if leaf.shape.element_type.is_narrow_float else leaf.shape.element_type
    return difference(expected, actual, one.elements, _tolerance(kind, width))


def _tolerance(element_type: ElementType, width: float) -> float:
    """Relative error within which a pattern's values are the wrong ones."""
    if not element_type.is_inexact:
        return 0.0
    is_narrow = element_type.is_narrow_float
    ulps = thresholds.PATTERN_NARROW_ULPS if is_narrow else thresholds.PATTERN_ULPS
    return max(ulps.value * epsilon(element_type), thresholds.PATTERN_WIDTHS.value * width)


def _other_output(one: Case, gap: Difference) -> Pattern | None:
    """Another result in place of the right one."""
    executions, number = one.executions, one.leaf.number
    values = executions.reference.shadow if _is_wide(one) else executions.expected
    for other, value in enumerate(values):
        if other == number or value.shape != gap.actual.shape or value.size == 1:
            continue
        if gap.explains(difference(value, value, gap.wrong, 0).expected):
            return Pattern("swap", f"the values are those of output number {other}")
    return None


# Values of the reference that explain a wrong result: what a stale buffer holds, an addend that is lost.

#: Values looked at: loops compute many.
_MOST_VALUES = 4000


class SourceFinder(Struct):
    """The probe of an execution of the reference that compares what it sees with what is wrong.

    Attributes:
        found: the difference to be explained.
        addend: the value that the result lacks.
        stale: the value that it holds.
    """

    found: Difference
    addend: Pattern | None = None
    stale: Pattern | None = None
    _seen: int = 0

    @property
    def pattern(self) -> Pattern | None:
        """The one that says more, as far as values were seen."""
        return self.addend or self.stale

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at one value."""
        self._seen += 1
        if self._seen > _MOST_VALUES or not isinstance(value, np.ndarray) or value.ndim == 0:
            return
        if value.shape != self.found.actual.shape or self.found.wrong.sum() < 2:
            return
        with np.errstate(all="ignore"):
            self._look(instruction, value)

    def _look(self, instruction: Instruction, value: Array) -> None:
        found = self.found
        wide = difference(value, value, found.wrong, found.tolerance).expected
        here = wide[found.wrong]
        if wide.dtype != found.actual.dtype:
            return
        lacks = found.expected[found.wrong] - found.actual[found.wrong]
        is_addend = np.abs(here).max() > 0 and any(
            close(sign * here, lacks, found.tolerance, found.scale).all() for sign in (1, -1)
        )
        if self.addend is None and found.wrong.mean() > 0.5 and is_addend:
            self.addend = Pattern("missing addend", f"the values lack {origin_of(instruction)}")
        if self.stale is None and np.ptp(np.abs(here)) > 0 and found.explains(wide):
            self.stale = Pattern(
                "stale value", f"the wrong elements hold the value of {origin_of(instruction)}"
            )
