"""A mutant that takes too long: one that runs is taken not to end, one that is judged or proved is not."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, cast

import pytest

from hlotool.lab.mutation.equivalence import Mutant
from hlotool.lab.mutation.task import Examiner, Fate, Found, Running, fate_within
from hlotool.system.resources import TooSlow


@dataclass
class _Busy:
    """An examiner that is interrupted.

    Attributes:
        seconds: see `Examiner`.
        running: likewise.
    """

    seconds: float
    running: Running | None

    def fate(self, mutant: Mutant) -> Found:
        raise TooSlow


@pytest.mark.parametrize(
    ("ran", "fate", "number"),
    [
        (50.0, Fate.KILLED, 7),
        (0.5, Fate.SURVIVED, None),  # others took the time
        (None, Fate.SURVIVED, None),  # the judge did, or a proof
    ],
)
def test_only_a_run_is_taken_not_to_end(ran: float | None, fate: Fate, number: int | None) -> None:
    running = None if ran is None else Running(7, "ties", time.perf_counter() - ran)
    found = fate_within(cast(Any, None), cast(Examiner, _Busy(0.2, running)))
    assert (found.fate, found.number) == (fate, number)
