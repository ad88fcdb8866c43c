"""Which executions of a long run stay for what their results show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hlotool.runs.capture.keeping import Keeper, Output, parse_conditions

_STEP, _OTHER = 6, 4


def _output(array: Any) -> Output:
    array = np.asarray(array, np.float32)
    return Output(bool(np.isfinite(array).all()), array.ndim == 0, lambda: array)


def _run(
    keeper: Keeper[int], losses: Sequence[float], size: int = 1
) -> tuple[list[dict[str, Any]], list[int]]:
    """A training of which each step returns a weight and a loss: the events, and what is written."""
    events, written = [], []
    for number, loss in enumerate(losses, start=1):
        outputs = {"out[0]": _output([1, 1]), "out[1]": _output(loss)}
        found, kept = keeper.see(_STEP, number, number, size, outputs)
        events += found
        written += kept
    return events, written


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("conditions", "losses", "events", "written"),
    [
        ("nan", [1, 1, 1, 1, NAN, 1], [5], {3, 4, 5}),
        ("nan", [1, 1, 1, NAN, NAN, NAN], [4], {2, 3, 4}),  # only where it begins
        ("nan", [1, NAN, 1, 1, 1, NAN], [2, 6], {1, 2, 4, 5, 6}),
        ("inf", [1, NAN, 1, -INF], [4], {2, 3, 4}),
        ("jump:5", [1, 1, 1, 1, 1, 4.9, -5.1, 1], [7], {5, 6, 7}),
        ("jump:5", [1, 1, 1, 1, 9], [], set()),  # too few values before it
        ("jump:5", [0] * 6 + [1], [], set()),  # nothing is five times 0
        ("jump:5", [NAN, 1, 1, 1, 1, 1, NAN, INF], [8], {6, 7, 8}),
        ("jump:2", [1] * 20 + [9] * 21 + [19], [21, 42], {19, 20, 21, 40, 41, 42}),
        ("every:3", [1] * 8, [3, 6], {3, 6}),  # a sample has no history
        ("nan|every:3", [1, 1, 1, NAN], [3, 4], {2, 3, 4}),
    ],
)
def test_events_and_what_is_written(
    conditions: str, losses: list[float], events: list[int], written: set[int]
) -> None:
    found, kept = _run(Keeper(parse_conditions(conditions), last=2, most_bytes=1000), losses)
    assert sorted(kept) == sorted(written)
    assert [event["execution"] for event in found] == events
    assert {event["output"] for event in found} <= {"out[1]", ""}


def test_the_bytes_are_bounded() -> None:
    """What waits goes first; then new events are named, and not kept."""
    keeper: Keeper[int] = Keeper(parse_conditions("nan"), last=3, most_bytes=35)
    found, kept = _run(keeper, [1, 1, 1, 1, NAN, 1, NAN], size=10)
    assert kept == [3, 4, 5]
    assert [event["is_kept"] for event in found] == [True, False]


def test_modules_are_apart() -> None:
    """Values of one are no history of another, and its executions push none of the other out."""
    keeper: Keeper[str] = Keeper(parse_conditions("jump:5|nan"), last=1, most_bytes=100)
    for number in range(1, 9):
        assert keeper.see(_STEP, number, f"a{number}", 1, {"out": _output(100)}) == ([], [])
        assert keeper.see(_OTHER, number, f"b{number}", 1, {"out": _output(1)}) == ([], [])
    assert keeper.see(_STEP, 9, "a9", 1, {"out": _output(NAN)})[1] == ["a8", "a9"]


def test_several_outputs_are_one_event() -> None:
    keeper: Keeper[int] = Keeper(parse_conditions("nan"), last=1, most_bytes=100)
    outputs = {"out[0]": _output([NAN, 1]), "out[1]": _output(1), "out[2]": _output(NAN)}
    [event], _ = keeper.see(_STEP, 1, 1, 1, outputs)
    assert (event["output"], event["others"], event["detail"]) == ("out[0]", 1, "1 of 2 elements")


@pytest.mark.parametrize(
    "text", ["", "nan|", "nans", "jump", "jump:1", "jump:x", "every:0", "every:1.5", "nan:3"]
)
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match="write nan, inf"):
        parse_conditions(text)
