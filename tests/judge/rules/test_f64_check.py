"""What excuses a difference of two programs in f64, and what does not."""

from __future__ import annotations

import numpy as np

from hlotool.judge.rules.f64_check import stay_finite


def test_executions_that_are_not_finite_span_everything() -> None:
    expected = np.array([1.0, np.inf, np.nan])
    assert stay_finite([np.array([1.5, 2.0, np.nan])], expected)
    assert not stay_finite([np.array([1.5, 2.0, 3.0]), np.array([np.nan, 2.0, 3.0])], expected)
