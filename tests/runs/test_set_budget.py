"""How many further sets a module gets depends on nothing but the command."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hlotool.inputs.adversarial.sets import InputSet
from hlotool.runs import other_inputs
from hlotool.runs.options.kept import ReplayOptions, RunOptions
from hlotool.runs.other_inputs import Allowed, Limits, allowed_for_sets, in_budget
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import find_tasks
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, TooSlow, spend, work_done

CORPUS = Path(__file__).parents[2] / "corpus"
#: A loop whose length depends on the values, sums that are rounded, a fault.
DUMPS = ("jax/newton_roots", "jax/int8_dot", "jax/pooling", "planted/slices_off_by_one")

#: How much slower the machine seems to be.
SLOW = 20


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def replayed(dumps: list[Path], **options: object) -> list[bytes]:
    chosen = RunOptions(**options)  # type: ignore[arg-type]
    tasks = find_tasks([str(dump) for dump in dumps], chosen, [])
    return sorted(map(_bytes, (row for task in tasks for row in replay_module(task))))


def _bytes(row: ModuleRecord) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(row, seconds=0.0))


def dumps() -> list[Path]:
    return [CORPUS / name for name in DUMPS]


@pytest.mark.parametrize("options", [{}, {"budget": "2x"}])
def test_a_slow_machine_writes_the_same_record(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = replayed(dumps(), **options)
    assert sum(msgspec.json.decode(row)["inputs"]["sets"] != [] for row in usual) >= 3
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        clock = getattr(time, name)
        monkeypatch.setattr(time, name, lambda clock=clock: SLOW * clock())
    assert replayed(dumps(), **options) == usual


def test_modules_in_another_order_get_the_same_sets() -> None:
    """What an earlier module of the process left in a cache is no saving."""
    assert replayed(dumps()[::-1]) == replayed(dumps())


def test_a_clock_that_ends_the_sets_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_inputs, "_SHARE", 0.0)
    [row] = replayed(dumps()[:1])
    assert "the clock ended them" in msgspec.json.decode(row)["inputs"]["sets_cut"]


def test_seconds_of_the_user_are_no_news() -> None:
    [row] = replayed(dumps()[:1], budget="0")
    inputs = msgspec.json.decode(row)["inputs"]
    assert (inputs["sets"], inputs["sets_cut"]) == ([], "")


@pytest.mark.parametrize(
    ("options", "work", "by_clock"),
    [
        # Half of the work without them.
        ({}, UNITS_PER_SECOND // 2, False),
        ({"budget": "2x"}, 2 * UNITS_PER_SECOND, False),
        ({"budget": "30"}, float("inf"), True),
        ({"thorough": True}, float("inf"), False),
    ],
)
def test_what_is_allowed(options: dict[str, object], work: float, by_clock: bool) -> None:
    allowed = allowed_for_sets(ReplayOptions(**options), UNITS_PER_SECOND)  # type: ignore[arg-type]
    assert (allowed.work, allowed.by_clock) == (work, by_clock)


def test_work_ends_a_block_where_it_goes_beyond() -> None:
    limits = Limits(Allowed(work=10, seconds=60.0))
    with limits.hold():
        spend(10)
    assert not limits.are_reached()
    with pytest.raises(TooMuchWork), limits.hold():
        spend(1)
    assert limits.are_reached()
    assert limits.cut == ""


def endless() -> None:
    while True:
        pass


def test_a_clock_ends_a_block_that_counts_nothing() -> None:
    limits = Limits(Allowed(work=10, seconds=0.01))
    with pytest.raises(TooSlow), limits.hold():
        endless()
    assert limits.are_reached()
    assert limits.cut


def test_sets_count_their_making_once_and_their_runs_twice() -> None:
    def made() -> Iterator[InputSet]:
        for number in range(4):
            spend(10)
            yield InputSet(f"{number}", ())

    found = []
    before = work_done()
    # Each takes 10 to be made and 2 · 5 to be run: 10, 30, 50, 70 by the time that each is there.
    for one, is_in_budget in in_budget(made(), Allowed(work=50, seconds=60.0)):
        spend(5)
        found.append((one.name, is_in_budget))
    assert found == [("0", True), ("1", True), ("2", True), ("3", False)]
    assert work_done() - before == 4 * 15
