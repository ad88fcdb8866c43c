"""Further sets of programs for several devices, and within the bounds of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.programs import write_module

from hlotool.blame.bisection.stages import inputs_that_show
from hlotool.inputs.adversarial.plan import directed_sets
from hlotool.inputs.captured import load_device_inputs, load_inputs
from hlotool.inputs.generate import generate_inputs
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module
from hlotool.runs.device_arguments import further_sets
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump
from hlotool.sources.records import DumpModule

SUM = """
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""

#: Each replica takes a slice of its own, and all add them up. XLA clamps the start.
EACH = f"""HloModule jit_f, replica_count=2
{SUM}
ENTRY main {{
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={{3}}
  ROOT r = f32[3] all-reduce(y), replica_groups={{}}, to_apply=sum
}}"""
#: A start beyond the end goes round.
WRAPS = EACH.replace(
    "y = f32[3] dynamic-slice(x, i)",
    "n = s32[] constant(6) j = s32[] add(i, n) k = s32[] remainder(j, n) y = f32[3] dynamic-slice(x, k)",
)

#: Before the partitioner, and after it.
GLOBAL = """HloModule jit_f, num_partitions=2
ENTRY main {
  x = f32[4,6] parameter(0), sharding={devices=[2,1]<=[2]}
  i = s32[] parameter(1), sharding={replicated}
  z = s32[] constant(0)
  ROOT y = f32[4,2] dynamic-slice(x, z, i), dynamic_slice_sizes={4,2}, sharding={devices=[2,1]<=[2]}
}"""
LOCAL = """HloModule jit_f, num_partitions=2
ENTRY main_spmd {
  x = f32[2,6] parameter(0), sharding={devices=[2,1]<=[2]}
  i = s32[] parameter(1), sharding={replicated}
  z = s32[] constant(0)
  ROOT y = f32[2,2] dynamic-slice(x, z, i), dynamic_slice_sizes={2,2}
}"""
WRAPS_LOCALLY = LOCAL.replace(
    "ROOT y = f32[2,2] dynamic-slice(x, z, i)",
    "n = s32[] constant(5) j = s32[] add(i, n) k = s32[] remainder(j, n)"
    " ROOT y = f32[2,2] dynamic-slice(x, z, k)",
)

#: Negative numbers are treated otherwise: nothing that the bounds allow shows it.
ROOTS = """HloModule jit_f
ENTRY main {
  x = f32[16] parameter(0)
  ROOT y = f32[16] abs(x)
}"""
AS_IT_IS = ROOTS.replace("abs(x)", "copy(x)")
#: Half of the largest number that the bounds allow.
TIES = """HloModule jit_f
ENTRY main {{
  x = f32[16] parameter(0)
  h = f32[] constant(0.5)
  b = f32[16] broadcast(h), dimensions={{}}
  p = pred[16] compare(x, b), direction={}
  n = f32[16] negate(x)
  ROOT y = f32[16] select(p, x, n)
}}"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(folder: Path, right: str, tested: str) -> DumpModule:
    (folder / "dump").mkdir(exist_ok=True, parents=True)
    write_module(folder / "dump", 0, right, tested)
    [module] = open_dump(str(folder / "dump")).modules
    return module


def replayed(folder: Path, right: str, tested: str, **options: Any) -> ModuleRecord:
    module = written(folder, right, tested)
    [row] = replay_module(Task(module, ReplayOptions(**options)))
    assert row.inputs is not None
    return row


def names(row: ModuleRecord) -> list[str]:
    assert row.inputs is not None
    return [one.name for one in row.inputs.sets]


def test_a_fault_of_programs_with_arguments_by_device(tmp_path: Path) -> None:
    row = replayed(tmp_path, EACH, WRAPS)
    assert row.verdict is Verdict.WRONG
    assert row.inputs is not None
    assert "indices out of range" in row.inputs.description
    devices = load_device_inputs(row.inputs.file, parse_module(EACH), 2)
    assert any(not 0 <= int(start) <= 5 for _, start in devices)
    assert replayed(tmp_path, EACH, WRAPS, inputs=row.inputs.file).verdict is Verdict.WRONG
    assert replayed(tmp_path, EACH, WRAPS, further_sets=False).verdict is Verdict.IDENTICAL


def test_a_bisection_starts_from_a_set_with_arguments_by_device(tmp_path: Path) -> None:
    module = written(tmp_path, EACH, WRAPS)
    file = inputs_that_show(Task(module, ReplayOptions()))
    devices = load_device_inputs(file, parse_module(EACH), 2)
    assert any(not 0 <= int(start) <= 5 for _, start in devices)
    assert not inputs_that_show(Task(written(tmp_path / "right", EACH, EACH), ReplayOptions()))


def test_a_fault_behind_the_partitioner(tmp_path: Path) -> None:
    row = replayed(tmp_path, GLOBAL, WRAPS_LOCALLY)
    assert row.verdict is Verdict.WRONG
    assert row.inputs is not None
    assert not 0 <= int(load_inputs(row.inputs.file, parse_module(GLOBAL))[1]) <= 4
    assert replayed(tmp_path, GLOBAL, WRAPS_LOCALLY, further_sets=False).verdict is Verdict.IDENTICAL


@pytest.mark.parametrize(("right", "tested"), [(EACH, EACH), (GLOBAL, LOCAL)])
def test_what_is_right_is_right_on_all_sets(tmp_path: Path, right: str, tested: str) -> None:
    row = replayed(tmp_path, right, tested, thorough=True)
    assert row.verdict is Verdict.IDENTICAL
    assert len(names(row)) > 10


def test_devices_have_values_of_their_own_and_share_those_of_one_part() -> None:
    text = EACH.replace("replica_count=2", "num_partitions=2")
    text = text.replace("parameter(0)\n  i", "parameter(0), sharding={devices=[2]<=[2]}\n  i")
    module = parse_module(text.replace("parameter(1)\n  y", "parameter(1), sharding={replicated}\n  y"))
    plain = [generate_inputs(module, seed).values for seed in (0, 1)]
    sets = {one.name: one for one in further_sets(module, plain, 0, copies=2)}
    (x, i), (other_x, other_i) = (row for row in sets["large numbers"].values)  # type: ignore[union-attr]
    assert not np.array_equal(x, other_x)
    assert np.array_equal(i, other_i)
    assert any("indices out of range" in one.odd for one in sets.values())


def test_sets_stay_within_the_bounds_of_the_user(tmp_path: Path) -> None:
    module = parse_module(ROOTS)
    plain = generate_inputs(module, 0, (0.25, 2.0)).values
    sets = list(directed_sets(module, plain, 0, (0.25, 2.0)))
    assert len(sets) > 10
    for one in sets:
        assert not one.odd
        [x] = map(np.asarray, one.values)
        assert x.min() >= 0.25, one.name
        assert x.max() <= 2.0, one.name


def test_within_bounds_nothing_beyond_them_is_an_accusation(tmp_path: Path) -> None:
    bounds = {"input_range": (0.25, 2.0), "thorough": True}
    row = replayed(tmp_path, ROOTS, AS_IT_IS, **bounds)
    assert row.verdict is Verdict.IDENTICAL
    assert len(names(row)) > 10
    assert replayed(tmp_path, ROOTS, AS_IT_IS).verdict is Verdict.WRONG


def test_a_tie_within_bounds(tmp_path: Path) -> None:
    row = replayed(tmp_path, TIES.format("GT"), TIES.format("GE"), input_range=(0.25, 2.0))
    assert row.verdict is Verdict.WRONG
    assert replayed(tmp_path, TIES.format("GT"), TIES.format("GT"), input_range=(0.25, 2.0)).verdict is (
        Verdict.IDENTICAL
    )
