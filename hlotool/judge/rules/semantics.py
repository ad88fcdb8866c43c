"""Does a difference between implementations, or another order of equal elements, explain a result?

The order in which a sort without `is_stable` leaves equal elements is not specified. A result is explained
if there is one order, the same for all outputs, under which the program returns it: so it is judged once
more, against the reference under that order. Orders that are tried: the one that the result itself shows,
where it holds what a sort returned; that of the C++ library; the reverse one. What none of them explains
stays wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from hlotool.backends.base import Backend, Probe, Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.departures import DEPARTURES, DepartingBackend
from hlotool.backends.numpy.executions.noise import Member
from hlotool.backends.numpy.executions.pairs import Pairs, PairsBackend
from hlotool.backends.numpy.executions.policy import Policy
from hlotool.backends.numpy.executions.ties import (
    ObservedTies,
    TieOrder,
    library_order,
    reversed_ties,
    ties_in,
    unstable_sorts,
)
from hlotool.backends.numpy.executions.varied import VariedBackend
from hlotool.errors import HlotoolError
from hlotool.facts.result_facts import origin_of
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.judge.comparison import Comparison, LeafComparison, aggregate, compare_values
from hlotool.judge.records import EvidenceRecord
from hlotool.judge.rules.ensemble import array_leaves
from hlotool.judge.rules.judgement import Judgement, Leaf, Side
from hlotool.judge.tolerance import few_ulps, leaf_scale
from hlotool.judge.verdicts import Verdict
from hlotool.system.resources import work_done


class Rule(Struct, frozen=True):
    """A known difference.

    Attributes:
        id: its name.
        text: what XLA does.
    """

    id: str
    text: str


#: What XLA's CPU and GPU code does at run time, but not where it folds constants.
_FLUSHED = Rule("flushed-denormals", "XLA takes denormal numbers for zero at run time")

PAIRS = Rule("f64-of-two-f32", "f64 on a TPU is a pair of f32: range of f32")
#: Executions that show what the range of f32 makes of a program in f64.
_IN_PAIRS = (Pairs(), Pairs(flushes=True), Pairs(overflow=np.nan))


class Departures:
    """The results of a program under the rules that concern it, each executed when it is asked for.

    Args:
        judgement: whose reference is executed.
    """

    def __init__(self, judgement: Judgement) -> None:
        side = self._side = judgement.reference
        self._few = judgement.few
        self._has_pairs = judgement.has_f64_of_pairs
        self._results: dict[Rule, list[Array] | None] = {}
        found = (Rule(known.id, f"XLA {known.text}") for known in DEPARTURES if known.occurs_in(side.module))
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
        of_range = self._of_range(leaf)
        if of_range is not None and bool((of_range | self._near(leaf, leaf.expected)).all()):
            return PAIRS
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
        if (of_range := self._of_range(leaf)) is not None:
            yield PAIRS, np.where(of_range, leaf.expected, leaf.actual)

    def _of_range(self, leaf: Leaf) -> npt.NDArray[np.bool_] | None:
        """The elements that differ because a value is beyond the range of f32; None where none does.

        They are not finite where that of pairs need not be, or as far off as executions in pairs are from
        each other: these differ where numbers are denormal in f32, and nowhere else.
        """
        if not self._has_pairs or leaf.actual.dtype.kind == "c":
            return None
        values = [leaves[leaf.number] for leaves in self._in_pairs if leaves is not None]
        if len(values) < len(_IN_PAIRS) or any(v.shape != leaf.actual.shape for v in values):
            return None
        found = np.logical_or.reduce([self._near(leaf, value) for value in values])
        if leaf.is_inexact:
            kept, flushed, _ = (value.astype(np.float64) for value in values)
            actual = leaf.actual.astype(np.float64)
            is_finite, expected = np.isfinite(actual), np.isfinite(leaf.expected)
            with np.errstate(all="ignore"):
                apart = np.where(np.isfinite(flushed), 2 * np.abs(kept - flushed), np.inf)
                found |= is_finite & np.isfinite(kept) & (np.abs(actual - kept) <= apart)
            leaves_range = np.logical_or.reduce([np.isfinite(value) != expected for value in values])
            found |= ~is_finite & leaves_range
        found &= ~self._near(leaf, leaf.expected)
        return found if found.any() else None

    def _near(self, leaf: Leaf, value: Array) -> npt.NDArray[np.bool_]:
        """Which elements of a result are a few roundings from a value."""
        if not leaf.is_inexact:
            return _same(leaf.actual, value)
        tolerance = self._few(leaf.shape.element_type, leaf.facts, leaf_scale(leaf.expected, leaf.actual))
        one, other = (np.asarray(side).astype(np.float64) for side in (leaf.actual, value))
        with np.errstate(all="ignore"):
            larger = np.maximum(np.abs(one), np.abs(other))
            allowed = np.maximum(tolerance.allowed(np.abs(other), larger), tolerance.denormal)
            return _same(one, other) | (np.isfinite(larger) & (np.abs(one - other) <= allowed))

    @cached_property
    def _in_pairs(self) -> list[list[Array] | None]:
        return [self._leaves(PairsBackend(pairs)) for pairs in _IN_PAIRS]

    def _value(self, rule: Rule, number: int) -> Array | None:
        if rule not in self._results:
            self._results[rule] = self._executed(rule)
        leaves = self._results[rule]
        return None if leaves is None else leaves[number]

    def _executed(self, rule: Rule) -> list[Array] | None:
        flushing = VariedBackend(Policy(varied=True), Member(flushes=True))
        return self._leaves(flushing if rule is _FLUSHED else DepartingBackend(rule.id))

    def _leaves(self, backend: Backend) -> list[Array] | None:
        """The result on a backend; None where it cannot be executed there."""
        try:
            return array_leaves(self._side.shape, self._side.execute(backend)())
        except HlotoolError:
            return None


def _same(one: Array, other: Array) -> npt.NDArray[np.bool_]:
    """Which elements are equal, or both NaN."""
    found: npt.NDArray[np.bool_] = (one == other) | ((one != one) & (other != other))
    return found


#: The rule's name in records.
RULE = "ties-of-unstable-sort"

#: Verdicts of a leaf that is right under an order of ties.
_RIGHT = frozenset({Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING, Verdict.DIFFERS})

_Judge: TypeAlias = Callable[[Judgement], Comparison]
_OrderOf: TypeAlias = Callable[[Module], TieOrder]


def weighed_by_ties(judgement: Judgement, found: Comparison, judge: _Judge) -> Comparison:
    """The verdict, without accusations that an order of ties explains.

    Args:
        judgement: the question.
        found: the answer, with equal elements in the order in which they stood.
        judge: answers such questions.
    """
    is_wrong = any(leaf.verdict is Verdict.WRONG for leaf in found.leaves)
    if not is_wrong or judgement.tolerance is not None or not unstable_sorts(judgement.reference.module):
        return found
    began = work_done()
    try:
        best = _closest(judgement)
        if best is None:
            return found
        spent = work_done() - began
        again = judge(dataclasses.replace(best.judgement, work=judgement.work - spent))
    except HlotoolError:
        return found
    return aggregate(_said(best, *leaf) for leaf in zip(found.leaves, again.leaves))


class _Ordered(Struct, frozen=True):
    """The same question about programs that order ties in some way.

    Attributes:
        judgement: the question.
        moved: the sorts of the reference of which equal elements come in another order.
    """

    judgement: Judgement
    moved: Sequence[Instruction]


def _closest(judgement: Judgement) -> _Ordered | None:
    """The order under which the reference is closest to the result; None where none is closer than before."""
    best, fewest = None, _mismatched(judgement)
    for order_of in _orders(judgement):
        ordered = _under(judgement, order_of)
        mismatched = _mismatched(ordered.judgement) if ordered.moved else fewest
        if mismatched < fewest:
            best, fewest = ordered, mismatched
        if not fewest:
            break
    return best


def _orders(judgement: Judgement) -> Iterator[_OrderOf]:
    is_for_one = judgement.reference.watch is not None
    if is_for_one:
        yield lambda module: ObservedTies(module, judgement.expected, judgement.actual)
    yield lambda _: library_order
    yield lambda _: reversed_ties


def _mismatched(judgement: Judgement) -> int:
    """Elements that are further off than a few ulps."""
    metrics = (leaf.metrics for leaf in judgement.compared.leaves)
    return sum(one.mismatched for one in metrics if one is not None)


def _under(judgement: Judgement, order_of: _OrderOf) -> _Ordered:
    """The question about programs that order ties in one way; raises as an execution does."""
    reference, tested = judgement.reference, judgement.tested
    order = _Watched(order_of(reference.module))
    ordered = _ordered(reference, order)
    expected = ordered.execute(NumpyBackend())()
    moved = [sort for sort in unstable_sorts(reference.module) if sort.name in order.moved]
    if tested is not None:
        tested = _ordered(tested, order_of(tested.module))
    changed = dataclasses.replace(judgement, reference=ordered, expected=expected, tested=tested)
    return _Ordered(changed, moved)


class _Watched:
    """An order of ties that remembers the names of the sorts which it changed."""

    def __init__(self, order: TieOrder) -> None:
        self.moved: set[str] = set()
        self._order = order

    def __call__(self, sort: Instruction, rows: Sequence[Array], order: Array, groups: Array) -> Array:
        changed = self._order(sort, rows, order, groups)
        if not np.array_equal(changed, order):
            self.moved.add(sort.name)
        return changed


def _ordered(side: Side, order: TieOrder) -> Side:
    """A program whose executions order ties in one way."""

    def execute(backend: Backend) -> Callable[[], Value]:
        with ties_in(order):
            return side.execute(backend)

    def watch(backend: Backend, probe: Probe) -> Value:
        assert side.watch is not None
        with ties_in(order):
            return side.watch(backend, probe)

    return dataclasses.replace(side, execute=execute, watch=None if side.watch is None else watch)


def _said(best: _Ordered, before: LeafComparison, after: LeafComparison) -> LeafComparison:
    """What is said of a leaf, from its verdicts with ties as they stood and in the other order."""
    if before.verdict is not Verdict.WRONG or after.verdict is Verdict.WRONG:
        return before
    if after.verdict not in _RIGHT:
        return after
    reason = (
        f"the order of equal elements of {origin_of(best.moved[0])} is not specified (no is_stable), and in "
        f"another order the reference returns the same ({RULE})"
    )
    evidence = replace(after.evidence or EvidenceRecord(seed=best.judgement.seed), rule=RULE)
    return replace(before, verdict=Verdict.SEMANTICS, reason=reason, evidence=evidence)
