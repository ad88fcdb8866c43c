"""Delta debugging on planted failures: minimal, in order, and not too many questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hlotool.blame.searches import minimize, minimize_tree


def oracle(fails: Callable[[Any], bool], asked: list[Any]) -> Callable[[Sequence[Any]], int | None]:
    def first_failing(candidates: Sequence[Any]) -> int | None:
        for position, candidate in enumerate(candidates):
            asked.append(candidate)
            if fails(candidate):
                return position
        return None

    return first_failing


@given(st.integers(1, 400), st.data())
def test_a_planted_set_is_what_stays(count: int, data: st.DataObject) -> None:
    needed = data.draw(st.frozensets(st.integers(0, count - 1), max_size=6))
    asked: list[Any] = []
    found = minimize(range(count), oracle(lambda kept: needed <= set(kept), asked))
    assert found == tuple(sorted(needed))
    assert len(asked) <= 4 * (len(needed) + 1) * (math.log2(count) + 3)


@given(st.lists(st.frozensets(st.integers(0, 30), min_size=1, max_size=4), min_size=1, max_size=4))
def test_the_result_is_minimal_whichever_cause_wins(causes: list[frozenset[int]]) -> None:
    def fails(kept: Sequence[int]) -> bool:
        return any(cause <= set(kept) for cause in causes)

    found = minimize(range(31), oracle(fails, []))
    assert fails(found)
    assert not any(fails([x for x in found if x != gone]) for gone in found)


@given(st.integers(1, 60), st.data())
def test_failures_that_come_and_go_still_end_minimal(count: int, data: st.DataObject) -> None:
    """An oracle that is not monotonic: the whole fails, some parts do, at random."""
    seed = data.draw(st.integers(0, 1000))

    def fails(kept: Sequence[int]) -> bool:
        return len(kept) == count or hash((seed, tuple(kept))) % 5 == 0

    found = minimize(range(count), oracle(fails, []))
    assert fails(found)
    assert len(found) <= 1 or not any(fails(tuple(x for x in found if x != gone)) for gone in found)


#: A tree: node (path) -> children by arity.
def children(node: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [(*node, i) for i in range(3)] if len(node) < 4 else []


@given(st.frozensets(st.tuples(*[st.integers(0, 2)] * 4), max_size=3))
def test_trees_keep_the_paths_that_matter(needed: frozenset[tuple[int, ...]]) -> None:
    asked: list[frozenset[tuple[int, ...]]] = []
    roots = [(i,) for i in range(3)]
    found = minimize_tree(roots, children, oracle(lambda kept: needed <= kept, asked))
    assert found == {leaf[:n] for leaf in needed for n in range(1, 5)}
    for candidate in asked:
        assert all(len(node) == 1 or node[:-1] in candidate for node in candidate)
