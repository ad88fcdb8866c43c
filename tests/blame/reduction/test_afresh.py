"""Programs in processes of their own, and what a reduction says of one that does not fail there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.reduction import holds, reduced

import hlotool
from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.case_worker import CaseOutcome
from hlotool.blame.reduction.oracle import CaseOracle, asked_afresh, failing_afresh
from hlotool.blame.steps import Steps
from hlotool.interface.api.reduce import ReduceArguments, _Search
from hlotool.judge.failures import Signature
from hlotool.judge.verdicts import Answer
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.system.executor import Limits

LIMITS = Limits(1, 60.0)
MODULE = hlotool.parse("ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] negate(p) }")
CASE = Case(MODULE, (np.ones(2, np.float32),))
RIGHT = CaseOutcome(answer=Answer.GOOD)
WRONG = CaseOutcome(answer=Answer.BAD, failure=Signature(kind="bad"))


def answered(monkeypatch: pytest.MonkeyPatch, *outcomes: CaseOutcome) -> Iterator[CaseOutcome]:
    """What fresh processes answer, one after the other; returned is what is left of it."""
    left = iter(outcomes)
    monkeypatch.setattr("hlotool.blame.reduction.oracle.asked_afresh", lambda *_: next(left))
    return left


def is_wrong(outcome: CaseOutcome) -> bool:
    return outcome.answer is Answer.BAD


def test_a_backend_that_is_right_is_right_in_a_process_of_its_own() -> None:
    assert asked_afresh(CASE, ReplayOptions(backend="numpy:flush"), LIMITS).answer is Answer.GOOD


def test_what_fails_sometimes_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    left = answered(monkeypatch, RIGHT, WRONG, RIGHT)
    assert failing_afresh(CASE, ReplayOptions(), LIMITS, is_wrong) is WRONG
    assert list(left) == [RIGHT]


def test_what_does_not_fail_is_asked_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    left = answered(monkeypatch, RIGHT, RIGHT, RIGHT, WRONG)
    assert failing_afresh(CASE, ReplayOptions(), LIMITS, is_wrong) is None
    assert list(left) == [WRONG]


@pytest.mark.parametrize(
    ("check", "outcome", "is_told"),
    [
        ("", RIGHT, True),
        ("", CaseOutcome(answer=Answer.BAD, failure=Signature(kind="other")), True),
        ("", WRONG, False),
        ("a command", RIGHT, False),
    ],
)
def test_a_reduction_says_of_what_is_left_that_it_does_not_fail_alone(
    check: str, outcome: CaseOutcome, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, judge = reduced(MODULE, holds("negate"), CASE.arguments)
    answered(monkeypatch, outcome, outcome, outcome)
    oracle = CaseOracle(judge, Steps())
    search = _Search(ReduceArguments("m.hlo", check=check), RunOptions(backend="xla"))
    told = ("what is left failed only where others had run in the same process",)
    assert search._alone(found, oracle).notes == (told if is_told else ())
