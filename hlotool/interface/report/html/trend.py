"""The page of many days: bars of results and seconds, and a table of what was found when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlotool.interface.report.outcomes import State, state_of_kind
from hlotool.interface.report.trend import DayRecord, TrendRecord
from hlotool.interface.report.words import plural, seconds

#: Of a chart in pixels: what a day takes, how much of it is a bar, the height of the largest.
_STEP, _BAR, _HEIGHT = 26, 18, 120


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a bar: where it is, what its colour is, and what a pointer on it shows."""

    x: float
    y: float
    height: float
    state: str
    about: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars by day.

    Attributes:
        title: what they are.
        about: the same in a sentence, for those who do not see them.
        width: pixels.
        height: likewise.
        bar: width of one.
        bars: their parts.
    """

    title: str
    about: str
    width: int
    height: int
    bar: int
    bars: Sequence[Bar]


def charts_of(record: TrendRecord) -> list[Chart]:
    """Results by day, what needs a look at the bottom; then seconds by day."""
    most = max((sum(day.states.values()) for day in record.days), default=0)
    longest = max((day.seconds for day in record.days), default=0.0)
    results = [bar for number, day in enumerate(record.days) for bar in _results(number, day, most)]
    times = [
        Bar(number * _STEP, _HEIGHT - height, height, "time", f"{day.day}: {seconds(day.seconds)}")
        for number, day in enumerate(record.days)
        if (height := _HEIGHT * day.seconds / longest if longest else 0.0)
    ]
    width = len(record.days) * _STEP
    span = f"{record.days[0].day} to {record.days[-1].day}"
    return [
        Chart("Results", f"{span}, at most {plural(most, 'result')} a day", width, _HEIGHT, _BAR, results),
        Chart("Seconds", f"{span}, at most {seconds(longest)} a day", width, _HEIGHT, _BAR, times),
    ]


def _results(number: int, day: DayRecord, most: int) -> Iterator[Bar]:
    below = float(_HEIGHT)
    for state in (State.FAILED, State.ERROR, State.SKIPPED, State.PASSED):
        if count := day.states.get(state.value, 0):
            # One wrong result of ten thousand is seen.
            height = max(2.0, _HEIGHT * count / most)
            below -= height
            yield Bar(number * _STEP, below, height, state.value, f"{day.day}: {_said(day, state)}")


def _said(day: DayRecord, state: State) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in day.kinds.items() if state_of_kind(kind) is state) or (
        f"{day.states[state.value]} {state.value}"
    )
