"""What is said of a long run while it goes on, on a clock of the test's own."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hlotool.interface.report.progress import Heartbeat
from hlotool.judge.verdicts import Verdict
from hlotool.runs.fleet.known import Remaining
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task
from hlotool.sources.file_names import Kind
from hlotool.sources.locations import Source
from hlotool.sources.records import DumpModule, Stage


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def tasks(tmp_path: Path) -> list[Task]:
    """A hundred modules of three sizes."""
    found = []
    for number in range(100):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(b"x" * 1000 * (1 + number % 3))
        stage = Stage(Kind.PLAIN, "", text=Source(str(path)))
        found.append(Task(DumpModule(number, f"f{number}", stages=(stage,)), RunOptions()))
    return found


def test_an_estimate_comes_true_where_time_goes_with_size(tasks: list[Task]) -> None:
    clock = Clock()
    remaining = Remaining(tasks, clock)
    assert remaining.seconds is None
    seconds = [2.0 + number % 3 for number in range(100)]
    for number, task in enumerate(tasks):
        clock.now += seconds[number]
        remaining.finished(task)
        if 15 <= number < 99:
            left = sum(seconds[number + 1 :])
            assert remaining.seconds == pytest.approx(left, abs=8.0)


@pytest.mark.parametrize("slower", [1.0, 1.05, 3.0, 0.1])
def test_an_estimate_does_not_grow_before_it_has_passed(slower: float, tasks: list[Task]) -> None:
    clock = Clock()
    remaining = Remaining(tasks, clock)
    end, pace = float("inf"), 5.0
    for task in tasks:
        clock.now += pace
        pace *= slower**0.1
        remaining.finished(task)
        left = remaining.seconds
        if left is not None:
            assert left > 0
            assert clock.now + left <= end + 1e-6 or end <= clock.now
            end = clock.now + left
    assert remaining.seconds is None


def test_a_line_now_and_then(tasks: list[Task]) -> None:
    clock, stream = Clock(), io.StringIO()
    beat = Heartbeat(stream, tasks, clock)
    row = ModuleRecord(path="x", name="f", verdict=Verdict.IDENTICAL)
    wrong = ModuleRecord(path="x", name="g", verdict=Verdict.WRONG)
    for number, task in enumerate(tasks[:20]):
        clock.now += 4.0
        beat.started(task)
        beat.finished(task, [wrong if number == 9 else row])
    first, named, second = stream.getvalue().splitlines()
    assert first == "hlotool: 7 of 100 modules, 0 wrong"
    assert named == "hlotool: ✗ wrong  module_0009.f9"
    assert second.startswith("hlotool: 15 of 100 modules, 1 wrong (the last: module_0009.f9), about ")
    clock.now += 40
    beat.doing(tasks[20], "judging")
    assert len(stream.getvalue().splitlines()) == 4
