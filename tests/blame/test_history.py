"""Turning points of planted histories: found exactly, with few questions."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from hlotool.blame.searches import QUESTIONS_PER_BIT, Transition, search_history
from hlotool.judge.verdicts import Answer

GOOD, BAD, UNUSABLE = Answer.GOOD, Answer.BAD, Answer.UNUSABLE
LETTERS = {"g": GOOD, "b": BAD, "u": UNUSABLE}


def search(text: str, exhaustive: bool = False) -> tuple[object, list[int]]:
    asked: list[int] = []

    def ask(point: int) -> Answer:
        asked.append(point)
        return LETTERS[text[point]]

    return search_history(len(text), ask, exhaustive), asked


@given(st.integers(2, 3000), st.data())
def test_a_single_turn_is_found_with_few_questions(count: int, data: st.DataObject) -> None:
    turn = data.draw(st.integers(1, count - 1))
    asked: list[int] = []

    def ask(point: int) -> Answer:
        asked.append(point)
        return BAD if point >= turn else GOOD

    history = search_history(count, ask)
    assert history.breaks == (Transition(turn - 1, turn, True),)
    assert history.is_sound
    assert history.is_monotonic
    assert len(asked) == len(set(asked))
    assert len(asked) <= max(2, QUESTIONS_PER_BIT * math.log2(count))


@given(st.lists(st.sampled_from("gbu"), min_size=1, max_size=80).map("".join), st.booleans())
@settings(max_examples=300)
def test_every_transition_is_a_real_one(text: str, exhaustive: bool) -> None:
    history, asked = search(text, exhaustive)
    assert len(asked) == len(set(asked))
    for t in history.transitions:
        assert {text[t.before], text[t.after]} == {"g", "b"}
        assert (text[t.after] == "b") == t.breaks
        assert set(text[t.before + 1 : t.after]) <= {"u"}
    usable = text.replace("u", "")
    if usable and usable[0] != usable[-1]:
        assert history.transitions
    if exhaustive and usable:
        turns = sum(a != b for a, b in itertools.pairwise(usable))
        assert len(history.transitions) == turns
    if not usable:
        assert (history.first, history.last) == (UNUSABLE, UNUSABLE)


@given(st.integers(4, 400), st.integers(0, 60), st.data())
def test_runs_of_unusable_points_cost_no_more_than_themselves(
    count: int, run: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(1, count - 2))
    unusable = range(start, min(start + run, count - 1))
    turn = data.draw(st.integers(1, count - 1))
    text = "".join("u" if p in unusable else "b" if p >= turn else "g" for p in range(count))
    history, asked = search(text)
    assert len(history.breaks) == 1
    assert len(asked) <= len(unusable) + max(2, QUESTIONS_PER_BIT * math.log2(count)) + 3


def test_a_repaired_fault_is_seen() -> None:
    history, _ = search("g" * 8 + "b" * 16 + "g" * 16 + "b" * 24)
    assert [t.breaks for t in history.transitions] == [True, False, True]
    assert not history.is_monotonic


def test_bad_ends_are_told() -> None:
    assert not search("gggg")[0].is_sound
    assert not search("bbbb")[0].is_sound
    assert not search("uuuu")[0].is_sound
    assert search("uggbu")[0].breaks == (Transition(2, 3, True),)
    assert search("g")[0].first is GOOD


def test_healthy_ends_cost_two_questions_unless_asked_for_more() -> None:
    hidden = "g" * 20 + "b" + "g" * 20
    assert len(search(hidden)[1]) == 2
    assert len(search(hidden, exhaustive=True)[0].breaks) == 1


def test_what_is_left_is_told_before_each_halving() -> None:
    """As often as it can still be halved, which is what is said of it."""
    left: list[int] = []
    history = search_history(100, lambda point: GOOD if point < 63 else BAD, left=left.append)
    assert [(t.before, t.after) for t in history.transitions] == [(62, 63)]
    assert left[0] == 98
    assert left[-1] == 1
    assert [points.bit_length() for points in left] == list(range(7, 7 - len(left), -1))
