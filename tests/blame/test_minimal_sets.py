"""All minimal sets of planted causes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hlotool.blame.bisection.compiler import CONFIRMATIONS, minimal_sets


@given(st.lists(st.frozensets(st.integers(0, 9), min_size=1, max_size=3), max_size=4))
@settings(max_examples=60)
def test_all_minimal_sets_are_found(causes: list[frozenset[int]]) -> None:
    def holds(chosen: frozenset[int]) -> bool:
        return any(cause <= chosen for cause in causes)

    found = minimal_sets(range(10), holds, holds, limit=100)
    expected = {c for c in causes if not any(other < c for other in causes)}
    assert set(found) == expected
    assert len(found) == len(expected)


def test_each_set_is_confirmed() -> None:
    confirmed: list[frozenset[int]] = []

    def confirm(chosen: frozenset[int]) -> bool:
        confirmed.append(chosen)
        return True

    minimal_sets(range(5), lambda s: 3 in s, confirm)
    assert confirmed == [frozenset({3})] * CONFIRMATIONS


def test_what_is_not_confirmed_is_not_found() -> None:
    assert minimal_sets(range(5), lambda s: 3 in s, lambda s: False) == []


def test_the_number_of_sets_is_bounded() -> None:
    assert len(minimal_sets(range(8), bool, bool, limit=3)) == 3
