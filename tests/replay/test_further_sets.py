"""What agrees on the plain inputs is run on further sets."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs import write_module

from hlotool.findings.verdict import Verdict
from hlotool.parse.reader import parse_module
from hlotool.replay.options import ReplayOptions
from hlotool.replay.records import ModuleRecord
from hlotool.replay.run import replay_module
from hlotool.replay.task import find_tasks
from hlotool.values.captured import load_inputs

RIGHT = """HloModule jit_f
ENTRY main {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}
}"""

#: Starts beyond the end go round, where XLA clamps them: right on every index in range.
WRAPS = """HloModule jit_f
ENTRY main {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  n = s32[] constant(6)
  j = s32[] add(i, n)
  k = s32[] remainder(j, n)
  ROOT y = f32[3] dynamic-slice(x, k), dynamic_slice_sizes={3}
}"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def replayed(folder: Path, tested: str, **options: object) -> ModuleRecord:
    folder.mkdir(exist_ok=True)
    write_module(folder, 0, RIGHT, tested)
    chosen = ReplayOptions(**{"budget": "60", **options})  # type: ignore[arg-type]
    [task] = find_tasks([str(folder)], chosen, [])
    [row] = replay_module(task)
    return row


def test_a_fault_that_only_a_further_set_shows(tmp_path: Path) -> None:
    row = replayed(tmp_path / "dump", WRAPS)
    assert row.verdict is Verdict.WRONG
    assert row.inputs is not None
    assert "indices out of range" in row.inputs.description
    assert row.inputs.sets[-1].verdict is Verdict.WRONG
    assert all(one.verdict is Verdict.IDENTICAL for one in row.inputs.sets[:-1])
    values = load_inputs(row.inputs.file, parse_module(RIGHT))
    assert not 0 <= int(values[1]) <= 5
    again = replayed(tmp_path / "dump", WRAPS, inputs=row.inputs.file)
    assert again.verdict is Verdict.WRONG


def test_without_further_sets_it_agrees(tmp_path: Path) -> None:
    row = replayed(tmp_path / "dump", WRAPS, further_sets=False)
    assert row.verdict is Verdict.IDENTICAL
    assert row.inputs is not None
    assert row.inputs.sets == []


def test_what_is_right_is_right_on_all_sets(tmp_path: Path) -> None:
    row = replayed(tmp_path / "dump", RIGHT, thorough=True, budget=None)
    assert row.verdict is Verdict.IDENTICAL
    assert row.inputs is not None
    assert row.inputs.description == "generated with seed 0"
    assert len(row.inputs.sets) > 10


def test_no_time_no_sets(tmp_path: Path) -> None:
    row = replayed(tmp_path / "dump", RIGHT, budget="0")
    assert row.verdict is Verdict.IDENTICAL
    assert row.inputs is not None
    assert row.inputs.sets == []


def test_tolerances_of_the_user_suit_the_plain_values(tmp_path: Path) -> None:
    row = replayed(tmp_path / "dump", WRAPS, rtol=1e-3)
    assert row.inputs is not None
    assert row.inputs.sets == []
