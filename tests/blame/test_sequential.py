"""The sequential test: error rates as promised, one run where one is enough."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotool.blame.steps import Rate, SequentialTest
from hlotool.judge.verdicts import Answer


def test_steady_failures_need_one_run() -> None:
    test = SequentialTest()
    assert test.run(lambda: True) == (Answer.BAD, Rate(1, 1))
    assert test.run(lambda: False) == (Answer.GOOD, Rate(0, 1))
    assert test.repeats == 1


@given(st.floats(0.02, 0.99), st.floats(0.9, 0.9999))
def test_repeats_bound_the_chance_of_a_miss(rate: float, confidence: float) -> None:
    test = SequentialTest(failing_rate=rate, confidence=confidence)
    assert (1 - rate) ** test.repeats <= 1 - confidence + 1e-12
    assert test.decide(0, test.repeats) is Answer.GOOD
    assert test.decide(1, 0) is Answer.BAD
    assert test.decide(0, test.repeats - 1) in (None, Answer.GOOD)


@pytest.mark.parametrize(("true_rate", "right"), [(0.3, Answer.BAD), (0.0, Answer.GOOD)])
def test_error_rate_of_a_rare_failure(true_rate: float, right: Answer) -> None:
    random = np.random.default_rng(7)
    test = SequentialTest(failing_rate=0.3, confidence=0.95)
    wrong = sum(test.run(lambda: bool(random.random() < true_rate))[0] is not right for _ in range(2000))
    assert wrong <= 0.05 * 2000


def test_noise_on_both_sides_is_told_apart() -> None:
    random = np.random.default_rng(8)
    test = SequentialTest(failing_rate=0.6, healthy_rate=0.1, confidence=0.99)
    for rate, right in ((0.6, Answer.BAD), (0.1, Answer.GOOD)):
        answers = [test.run(lambda r=rate: bool(random.random() < r))[0] for _ in range(500)]
        assert sum(a is not right for a in answers) <= 10


def test_the_limit_leaves_it_open() -> None:
    test = SequentialTest(failing_rate=0.001, confidence=0.99, limit=10)
    assert test.run(lambda: False) == (Answer.UNUSABLE, Rate(0, 10))


def test_rates_have_intervals() -> None:
    low, high = Rate(3, 10).interval(0.95)
    assert (low, high) == pytest.approx((0.0667, 0.6525), abs=1e-3)
    assert Rate(0, 10).interval(0.95)[0] == 0
    assert Rate(10, 10).interval(0.95)[1] == 1
    assert Rate(3, 10).estimate == pytest.approx(0.3)


@pytest.mark.parametrize("arguments", [{"failing_rate": 0.1, "healthy_rate": 0.1}, {"confidence": 1.0}])
def test_impossible_tests_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        SequentialTest(**arguments)
