"""A program that passes on its plain inputs is reduced on a set on which it fails."""

from __future__ import annotations

from pathlib import Path

from support.reduction import PlantedJudge

from hlotool.replay.options import ReplayOptions
from hlotool.search.reduction.oracle import CaseOracle
from hlotool.search.reduction.task import load_case, on_inputs_that_show
from hlotool.search.steps import Steps

SLICE = """HloModule slice
ENTRY main {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}
}
"""


def oracle() -> CaseOracle:
    """Wrong where the slice starts beyond the end."""
    return CaseOracle(PlantedJudge(lambda _, arguments: "bad" if int(arguments[1]) > 5 else ""), Steps())  # type: ignore[call-overload]


def test_a_further_set_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "slice.hlo"
    path.write_text(SLICE)
    options = ReplayOptions()
    loaded = load_case(str(path), options)
    assert 0 <= int(loaded.case.arguments[1]) <= 5
    shown = on_inputs_that_show(loaded, oracle(), options)
    assert int(shown.case.arguments[1]) > 5
    assert "positions beyond the end" in shown.inputs.description


def test_without_further_sets_the_inputs_stay(tmp_path: Path) -> None:
    path = tmp_path / "slice.hlo"
    path.write_text(SLICE)
    options = ReplayOptions(further_sets=False)
    loaded = load_case(str(path), options)
    assert on_inputs_that_show(loaded, oracle(), options) is loaded
