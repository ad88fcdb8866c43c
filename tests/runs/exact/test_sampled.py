"""What integers decide is compared on further sets of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.programs import write_module

from hlotool.inputs.captured import load_device_inputs, load_inputs
from hlotool.inputs.generate import InputGenerator
from hlotool.parser.reader import parse_module
from hlotool.runs.exact.points import Options, point_arguments
from hlotool.runs.exact.records import ProvedRecord
from hlotool.runs.exact.task import ProveTask, programs, prove
from hlotool.sources.directory import open_dump

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


#: Two devices take slices of their own, and add them up.
REPLICAS = """HloModule jit_h, replica_count=2
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main {{
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  {}
  ROOT r = f32[3] all-reduce(y), replica_groups={{}}, to_apply=sum
}}"""


def on_replicas(text: str) -> str:
    """What two devices do each, which is one of the programs above."""
    lines = text.partition("parameter(1)\n")[2].replace("ROOT ", "").rstrip("}").strip()
    return REPLICAS.format(lines)


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


def test_devices_with_arguments_of_their_own(tmp_path: Path) -> None:
    right, wraps, clamps = map(on_replicas, (RIGHT, WRAPS, CLAMPS))
    assert proved(tmp_path, right, wraps, further_sets=False).relation == "equal"
    pair = proved(tmp_path, right, wraps)
    assert pair.relation == "unequal"
    assert "indices out of range" in pair.shown_by
    assert pair.divergence is not None
    starts = [int(start) for _, start in load_device_inputs(pair.inputs, parse_module(right), 2)]
    assert len(set(starts)) == 2, "each device has its own"
    assert any(not 0 <= start <= 5 for start in starts)
    again = proved(tmp_path, right, wraps, inputs=pair.inputs)
    assert (again.relation, again.shown_by, again.further_sets) == ("unequal", "", 0)
    pair = proved(tmp_path, right, clamps)
    assert pair.relation == "equal"
    assert pair.further_sets > 3


def test_given_values_of_one_device_out_of_two_show_it(tmp_path: Path) -> None:
    right, wraps = map(on_replicas, (RIGHT, WRAPS))
    x = np.ones(8, np.float32)
    for starts, relation in (((5, 6), "unequal"), ((6, 5), "unequal"), ((5, 0), "equal")):
        file = tmp_path / "in.npz"
        np.savez(file, **{f"{n}@{d}": v for d, s in enumerate(starts) for n, v in (("x", x), ("i", s))})
        assert proved(tmp_path, right, wraps, inputs=str(file)).relation == relation, starts
    np.savez(file, x=x, i=5)
    pair = proved(tmp_path, right, wraps, inputs=str(file))
    assert pair.relation == "refused"
    assert "in.npz" in pair.reason


def test_given_integers_stay_on_their_device_and_words_are_those_of_the_part() -> None:
    # The first half of x is on the second device.
    module = parse_module("""HloModule jit_f, num_partitions=2
    ENTRY main_spmd {
      x = f32[2] parameter(0), sharding={devices=[2]1,0}
      w = f32[3] parameter(1), sharding={replicated}
      i = s32[1] parameter(2), sharding={devices=[2]1,0}
      d = u32[] partition-id()
      ROOT t = (f32[2], f32[3], s32[1], u32[]) tuple(x, w, i, d) }""")
    program, _ = programs(module, module)
    inputs, runner = InputGenerator(module), program.runner
    assert runner.copies == 2
    given = [
        (np.ones(2, np.float32), np.ones(3, np.float32), np.array([number], np.int32)) for number in (7, 8)
    ]
    drawn = point_arguments(inputs, runner, Options(), 0)
    points = point_arguments(inputs, runner, Options(given=[given]), 0)
    assert [int(device[2][0]) for device in points] == [7, 8]
    for one, other in zip(drawn, points):
        assert all(np.array_equal(a, b) for a, b in zip(one[:2], other[:2]))
    assert np.array_equal(points[0][1], points[1][1])
    assert not np.array_equal(points[0][0], points[1][0])
