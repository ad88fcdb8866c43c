"""What a replay says beside the verdict: coverage, and where NaN and infinity come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import find_tasks

AFTER = "module_0001.jit_f.cpu_after_optimizations.txt"
BEFORE = "module_0001.jit_f.before_optimizations.txt"

CHOICE = """HloModule jit_f
ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  zs = f32[4] broadcast(z), dimensions={}
  p = pred[4] compare(x, zs), direction=GT, metadata={op_name="jit(f)/gt" source_file="f.py" source_line=3}
  ROOT r = f32[4] select(p, x, zs), metadata={op_name="jit(f)/where" source_file="f.py" source_line=4}
}
"""
OVERFLOW = """HloModule jit_f
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] multiply(x, x), metadata={op_name="jit(f)/square" source_file="f.py" source_line=7}
  ROOT r = f32[4] subtract(y, y), metadata={op_name="jit(f)/sub" source_file="f.py" source_line=8}
}
"""


def replayed(folder: Path, text: str, x: Any = None, after: str = "", **options: object) -> ModuleRecord:
    (folder / BEFORE).write_text(text)
    (folder / AFTER).write_text(after or text)
    if x is not None:
        np.savez(folder / "in.npz", x=np.array(x, np.float32))
        options["inputs"] = str(folder / "in.npz")
    (task,) = find_tasks([str(folder)], ReplayOptions(**options), [])  # type: ignore[arg-type]
    (row,) = replay_module(task)
    return row


def test_coverage_of_given_inputs(tmp_path: Path) -> None:
    coverage = replayed(tmp_path, CHOICE, [1, 2, 3, 0]).coverage
    assert coverage is not None
    assert (coverage.covered, coverage.decisions) == (1, 2)
    assert (coverage.occurred, coverage.outcomes) == (4, 5)
    (never,) = coverage.never
    assert (never.kind, never.never, never.odd) == ("comparison", ["less"], ["unordered"])
    assert (never.source.user_line, never.source.instruction) == ("f.py:3", "p")
    assert coverage.listing == []


def test_all_decisions_are_listed_where_that_is_asked_for(tmp_path: Path) -> None:
    coverage = replayed(tmp_path, CHOICE, [1, 2, 3, -1], coverage=True).coverage
    assert coverage is not None
    assert [(d.kind, d.occurred, d.never) for d in coverage.listing] == [
        ("comparison", ["less", "greater"], ["equal"]),
        ("selection", ["true", "false"], []),
    ]


def test_no_coverage(tmp_path: Path) -> None:
    row = replayed(tmp_path, CHOICE, coverage=False)
    assert row.coverage is None
    assert row.verdict is Verdict.IDENTICAL


def test_coverage_that_fails_costs_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hlotool.inputs.coverage.observer import Observer

    def broken(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr(Observer, "coverage", broken)
    row = replayed(tmp_path, CHOICE, [1, 2, 3, -1])
    assert row.verdict is Verdict.IDENTICAL
    assert row.coverage is None
    assert "RuntimeError: oops" in row.coverage_missing


def test_nan_on_both_sides_has_an_origin(tmp_path: Path) -> None:
    # 1e30 squared is infinite in f32, and infinity - infinity is NaN.
    row = replayed(tmp_path, OVERFLOW, [1, 1e30, 2, 3])
    assert row.verdict is Verdict.IDENTICAL
    assert [(found.index, found.nan, found.inf) for found in row.special_values] == [([], 1, 0)]
    nan, infinity = row.origins
    assert (nan.kind, nan.source.user_line, nan.index) == ("NaN", "f.py:8", [1])
    assert [operand.value for operand in nan.operands] == ["inf", "inf"]
    assert (infinity.kind, infinity.source.user_line) == ("infinity", "f.py:7")
    assert row.nothing_but_nan == []
    assert row.fails_on(["nan"])
    assert not row.fails_on(["inf"])


REGION = """HloModule jit_f, num_partitions=4

log {
  x = f32[2,3] parameter(0)
  ROOT y = f32[2,3] log(x), metadata={source_file="f.py" source_line=7}
}

ENTRY main {
  x = f32[8,3] parameter(0), sharding={devices=[4,1]<=[4]}
  a = f32[8,3] custom-call(x), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}
  b = f32[2,3] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
  c = f32[2,3] call(b), to_apply=log
  d = f32[2,3] custom-call(c), custom_call_target="Sharding", sharding={manual}
  ROOT r = f32[8,3] custom-call(d), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1]<=[4]}
}
"""


def test_nan_on_one_device_of_several(tmp_path: Path) -> None:
    """Row 5 is the second one of device 2, whose operand is shown, not that of the first device."""
    x = np.ones((8, 3), np.float32)
    x[5, 1] = -2
    row = replayed(tmp_path, REGION, x)
    [made] = row.origins
    assert (made.kind, made.source.user_line, made.device, made.index) == ("NaN", "f.py:7", 2, [1, 1])
    assert [operand.value for operand in made.operands] == ["-2.0"]


def test_what_all_devices_have_names_none(tmp_path: Path) -> None:
    [made] = replayed(tmp_path, REGION, np.full((8, 3), -2, np.float32)).origins
    assert made.device is None


def test_nan_of_an_argument(tmp_path: Path) -> None:
    row = replayed(tmp_path, CHOICE.replace("select(p, x, zs)", "add(x, x)"), [1, float("nan"), 2, 3])
    assert [(made.kind, made.source.opcode, made.source.instruction) for made in row.origins] == [
        ("NaN", "parameter", "x")
    ]


def test_nothing_but_nan(tmp_path: Path) -> None:
    row = replayed(tmp_path, OVERFLOW, [1e30, 1e30, 2e30, 3e30])
    assert row.nothing_but_nan == [[]]


def test_infinity_on_the_tested_side_only(tmp_path: Path) -> None:
    # a · b / b with a · b too large for f32: XLA may divide first. The reference is finite.
    before = """HloModule jit_f
      ENTRY e { x = f32[4] parameter(0) ROOT r = f32[4] copy(x) }"""
    after = """HloModule jit_f
      ENTRY e { x = f32[4] parameter(0) c = f32[] constant(1e30) b = f32[4] broadcast(c), dimensions={}
        y = f32[4] multiply(x, b) ROOT r = f32[4] divide(y, b) }"""
    row = replayed(tmp_path, before, [1, 1e10, 2, 3], after)
    assert row.verdict is Verdict.RANGE
    assert [(made.kind, made.source.opcode) for made in row.origins] == [("infinity", "multiply")]


def test_finite_results_have_no_origins(tmp_path: Path) -> None:
    row = replayed(tmp_path, CHOICE)
    assert (row.special_values, row.origins, row.origins_missing) == ([], [], "")
