"""Work is counted, and its limits cut at the same place every time."""

from __future__ import annotations

import threading

import pytest

from hlotool.system.resources import TooMuchWork, in_words, spend, work_done, work_limit


def test_what_is_spent_is_done() -> None:
    before = work_done()
    spend(3)
    spend(4)
    assert work_done() - before == 7


def test_a_limit_may_be_used_up_and_not_exceeded() -> None:
    with work_limit(10):
        spend(10)
        with pytest.raises(TooMuchWork):
            spend(1)
    spend(1)


def test_an_enclosing_limit_holds() -> None:
    with pytest.raises(TooMuchWork), work_limit(5), work_limit(100):
        spend(6)


def test_an_inner_limit_is_over_with_its_block() -> None:
    with work_limit(100):
        with pytest.raises(TooMuchWork), work_limit(5):
            spend(6)
        spend(90)


def test_threads_count_together() -> None:
    """Devices of a program are threads, which do not lose each other's work."""
    before = work_done()
    threads = [threading.Thread(target=lambda: [spend(1) for _ in range(2000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert work_done() - before == 16_000


def test_words_are_seconds_of_a_usual_machine() -> None:
    assert in_words(12_000_000_000) == "takes about 12 s"
