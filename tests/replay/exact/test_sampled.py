"""What integers decide is compared on further sets of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.programs import write_module

from hlotool.dump.directory import open_dump
from hlotool.parse.reader import parse_module
from hlotool.replay.exact.records import ProvedRecord
from hlotool.replay.exact.task import ProveTask, prove
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

#: XLA's clamp written out: equal on every index.
CLAMPS = """HloModule jit_f
ENTRY main {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  n = s32[] constant(5)
  k = s32[] clamp(z, i, n)
  ROOT y = f32[3] dynamic-slice(x, k), dynamic_slice_sizes={3}
}"""

#: A tie of two integers, in one element of 64: `<` and `<=` part there only.
TIE = """HloModule jit_g
ENTRY main {{
  x = f32[4] parameter(0)
  a = s32[4] parameter(1)
  b = s32[4] parameter(2)
  p = pred[4] compare(a, b), direction={}
  n = f32[4] negate(x)
  ROOT y = f32[4] select(p, x, n)
}}"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def proved(tmp_path: Path, right: str, tested: str, **options: object) -> ProvedRecord:
    (tmp_path / "dump").mkdir(exist_ok=True)
    write_module(tmp_path / "dump", 0, right, tested)
    [module] = open_dump(tmp_path / "dump").modules
    assert module.pair is not None
    task = ProveTask("f", (module, module), *module.pair, trials=2, seed=0, time_limit=60.0)
    return prove(replace(task, **options))  # type: ignore[arg-type]


def test_an_index_out_of_range_shows_it_and_is_saved(tmp_path: Path) -> None:
    pair = proved(tmp_path, RIGHT, WRAPS)
    assert pair.relation == "unequal"
    assert "indices out of range" in pair.shown_by
    assert not 0 <= int(load_inputs(pair.inputs, parse_module(RIGHT))[1]) <= 5
    # The saved file alone says the same.
    again = proved(tmp_path, RIGHT, WRAPS, inputs=pair.inputs)
    assert (again.relation, again.shown_by, again.further_sets) == ("unequal", "", 0)


def test_random_points_alone_do_not_show_it(tmp_path: Path) -> None:
    pair = proved(tmp_path, RIGHT, WRAPS, further_sets=False)
    assert (pair.relation, pair.further_sets) == ("equal", 0)


def test_where_they_part_is_found_at_that_set(tmp_path: Path) -> None:
    pair = proved(tmp_path, RIGHT, WRAPS)
    assert pair.divergence is not None
    assert pair.divergence.source.instruction in ("k", "y")


def test_what_is_equal_is_equal_on_all_sets(tmp_path: Path) -> None:
    pair = proved(tmp_path, RIGHT, CLAMPS)
    assert pair.relation == "equal"
    assert pair.further_sets > 3


def test_a_tie_of_integers(tmp_path: Path) -> None:
    pair = proved(tmp_path, TIE.format("LT"), TIE.format("LE"))
    assert pair.relation == "unequal"


def test_without_integers_there_are_no_sets(tmp_path: Path) -> None:
    text = "HloModule f\nENTRY e {{ x = f32[3] parameter(0) ROOT y = f32[3] {} }}"
    pair = proved(tmp_path, text.format("add(x, x)"), text.format("subtract(x, x)"))
    assert (pair.relation, pair.further_sets) == ("unequal", 0)
    pair = proved(tmp_path, text.format("add(x, x)"), text.format("add(x, x)"))
    assert (pair.relation, pair.further_sets) == ("equal", 0)
