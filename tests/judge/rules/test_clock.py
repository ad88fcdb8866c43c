"""A judge has its time, and what other processes take of it does not count."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hlotool.judge.rules import ensemble
from hlotool.judge.rules.ensemble import Clock, OutOfTime


class Machine:
    """A clock, and how much of what it shows a process has starved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, busy: float) -> None:
        self.now = 1000.0
        self.starved = 50.0
        self.busy = busy
        monkeypatch.setattr(ensemble.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(ensemble, "seconds_starved", lambda _: self.starved)

    def execute(self) -> np.ndarray:  # type: ignore[type-arg]
        """Two seconds on an idle machine."""
        self.now += 2.0 + self.busy
        self.starved += self.busy
        return np.zeros(1)

    def executions(self, clock: Clock) -> int:
        """How many there is time for, of a hundred."""
        for number in range(100):
            try:
                clock.timed(self.execute)
            except OutOfTime:
                return number
        return 100


def test_executions_end_before_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, busy=0.0)
    assert machine.executions(Clock(machine.now + 12.0)) == 6


@pytest.mark.parametrize("busy", [2.0, 6.0])
def test_on_a_busy_machine_there_are_about_as_many(monkeypatch: pytest.MonkeyPatch, busy: float) -> None:
    """The last ones are thought to take as long as the clock showed of those before."""
    machine = Machine(monkeypatch, busy)
    assert 6 - math.ceil(busy / 2) <= machine.executions(Clock(machine.now + 12.0)) <= 6


def test_what_starved_before_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, busy=0.0)
    machine.starved = 1e6
    assert machine.executions(Clock(machine.now + 12.0)) == 6


def test_without_a_deadline_there_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, busy=1e3)
    assert machine.executions(Clock()) == 100
