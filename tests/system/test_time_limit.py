"""A limit within a process."""

from __future__ import annotations

import contextlib
import signal
import time

import pytest

from hlotool.system.resources import TooSlow, time_limit


def test_what_takes_too_long_is_stopped() -> None:
    """Also where a handler on the way takes every exception for its own."""
    with pytest.raises(TooSlow):
        _busy_within(0.05)


def _busy_within(seconds: float) -> None:
    with time_limit(seconds):
        for _ in range(2000):
            with contextlib.suppress(Exception):
                time.sleep(0.01)


@pytest.mark.parametrize("seconds", [5.0, float("inf")])
def test_what_is_quick_enough_goes_on(seconds: float) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(seconds):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
