"""hlotool's judge and the fixed tolerances of its peers, on one pair."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from benchmarks.verdicts.peers import BOUNDS, passes
from benchmarks.verdicts.runs import Leaves, nested
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import CompareExactly, judgement_of
from hlotool.runs.exact.result import ExactResult
from hlotool.runs.exact.task import programs
from hlotool.runs.exact.within import comparing
from hlotool.system.resources import TooSlow, time_limit

#: What accuses the tested side.
ACCUSING = frozenset({"wrong", "structural"})

#: For one judgement; programs of the corpus run in milliseconds.
_SECONDS = 120.0


class PairVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was said of one pair.

    Attributes:
        verdict: of the module.
        reason: with it.
        leaves: verdict of each array.
        patterns: that were recognised, by array.
        members: size of the ensemble; 0 where none was needed.
        seconds: that judging took.
        run_seconds: of one run of the reference, planned already.
        plan_seconds: of planning it.
        peers: which fixed tolerances are content.
        ratio: largest one of an array with the module's verdict, where an ensemble decided about it.
    """

    verdict: str
    reason: str
    leaves: list[str]
    patterns: list[str]
    members: int
    seconds: float
    run_seconds: float
    plan_seconds: float
    peers: list[str]
    ratio: float | None = None


def judged(
    module: Module,
    arguments: Sequence[Any],
    expected: Leaves,
    actual: Leaves,
    tested: Module | None,
    cost: tuple[float, float] = (0.0, 0.0),
) -> PairVerdict:
    """The verdict on `actual`, where `expected` is the reference's result for `arguments`.

    Args:
        module: the reference.
        arguments: of both sides.
        expected: what the reference returns.
        actual: in question.
        tested: the program that gave it, if it is one.
        cost: seconds to run the reference, and to plan it.
    """
    wanted, got = nested(module, expected), nested(module, actual)
    began = time.perf_counter()
    try:
        with time_limit(_SECONDS):
            exactly = None if tested is None else _comparing(module, tested, arguments)
            comparison = judge(
                judgement_of(module, arguments, got, expected=wanted, tested=tested, compare_exactly=exactly)
            )
    except (HlotoolError, TooSlow) as error:
        failure = f"{type(error).__name__}: {error}"
        return PairVerdict("no verdict", failure, [], [], 0, time.perf_counter() - began, *cost, [])
    seconds = time.perf_counter() - began
    decisive = [leaf.evidence for leaf in comparison.leaves if leaf.verdict is comparison.verdict]
    ratios = [e.ratio for e in decisive if e is not None and e.members and e.ratio and e.wide != "outside"]
    evidence = [leaf.evidence for leaf in comparison.leaves if leaf.evidence is not None]
    return PairVerdict(
        verdict=comparison.verdict.value,
        reason=comparison.reason,
        leaves=[leaf.verdict.value for leaf in comparison.leaves],
        patterns=[e.pattern for e in evidence if e.pattern],
        members=max((e.members for e in evidence), default=0),
        seconds=seconds,
        run_seconds=cost[0],
        plan_seconds=cost[1],
        ratio=max(ratios, default=None),
        peers=[name for name, bounds in BOUNDS.items() if passes(expected, actual, bounds)],
    )


def _comparing(module: Module, tested: Module, arguments: Sequence[Any]) -> CompareExactly:
    """As `run` compares programs exactly; they are read when it is asked, for most results are the same."""

    def compare_exactly(seconds: float, trials: int) -> ExactResult:
        return comparing(*programs(module, tested), arguments=arguments)(seconds, trials)

    return compare_exactly
