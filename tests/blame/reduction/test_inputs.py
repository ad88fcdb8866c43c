"""A program that passes on its plain inputs is reduced on a set on which it fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.reduction import PlantedJudge

from hlotool.blame.reduction.oracle import CaseOracle
from hlotool.blame.reduction.reducer import load_case, on_inputs_that_show
from hlotool.blame.steps import Steps
from hlotool.runs.options.kept import ReplayOptions

SLICE = """HloModule slice
ENTRY main {
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}
}
"""


#: Each of two devices takes a slice of its own.
REPLICAS = SLICE.replace("HloModule slice", "HloModule slice, replica_count=2").replace(
    "ROOT y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}",
    "y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}\n"
    "  ROOT r = f32[6] all-gather(y), dimensions={0}, replica_groups={}",
)


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


def test_a_set_has_arguments_for_every_device(tmp_path: Path) -> None:
    path = tmp_path / "slice.hlo"
    path.write_text(REPLICAS)
    options = ReplayOptions()
    loaded = load_case(str(path), options)
    assert loaded.case.copies == 2

    def is_wrong(_: object, devices: Sequence[Any]) -> str:
        return "bad" if any(int(start) > 5 for _, start in devices) else ""

    shown = on_inputs_that_show(loaded, CaseOracle(PlantedJudge(is_wrong), Steps()), options)
    starts = [int(start) for _, start in shown.case.arguments]  # type: ignore[misc]
    assert len(starts) == 2
    assert max(starts) > 5
