"""The locator on planted faults: thresholds on what `benchmarks/blame/locate.py` prints."""

from __future__ import annotations

import statistics

import pytest

from benchmarks.blame import locate


@pytest.mark.slow
def test_planted_faults_are_named() -> None:
    """40 cases; the thresholds lie below what results/blame.md measures on 300 by the spread of so few."""
    found = locate.run(40, 77)
    near, far = found["adjacent stages"], found["first against last"]
    assert near.found >= 0.97 * near.cases, near.misses
    assert far.found >= 0.8 * far.cases, far.misses
    assert statistics.median(far.named) <= 2
    assert near.same == near.asked_both
    assert far.same == far.asked_both
