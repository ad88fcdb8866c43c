"""Budgets of processor time that hold on slow machines and on busy ones.

Beside other work a processor does less in a second, and an old one does less anyway: what a test may take
grows by as much as a fixed piece of Python takes longer than on the machine where the budgets were set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds after which a process is taken for one that hangs: no verdict on how quick it is.
HUNG = 600
#: Seconds of processor time that `_work` took there (Python 3.11), nothing else running.
_USUAL = 0.010


def _work() -> int:
    words = {str(number): number for number in range(30_000)}
    return sum(words[str(number)] * 3 % 7 for number in range(30_000))


def slowness() -> float:
    """How many times as long as usual Python takes here and now; at least 1."""
    start = time.process_time()
    _work()
    return max(1.0, (time.process_time() - start) / _USUAL)


@contextmanager
def processor_budget(seconds: float) -> Iterator[None]:
    """The block takes no more of this process's time than `seconds` on the machine of the budgets."""
    before = slowness()
    start = time.process_time()
    yield
    spent = time.process_time() - start
    allowed = seconds * max(before, slowness())
    assert spent < allowed, f"{spent:.2f} s of processor time, {allowed:.2f} s are allowed"
