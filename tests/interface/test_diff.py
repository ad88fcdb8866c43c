"""Differences for people, as golden texts of 100 columns; colours on a terminal only."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from hlotool.blame.diff_programs import diff_modules
from hlotool.blame.diff_results import diff_results, read_results
from hlotool.interface.report.command_records import DiffRecord
from hlotool.interface.report.console import plain_text, render
from hlotool.interface.report.diff import DiffReport
from hlotool.parser.reader import parse_module

LEFT = """HloModule jit_step
region {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,16]{1,0} parameter(0)
  w = f32[16,4]{1,0} parameter(1)
  dot.1 = f32[8,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(step)/dot_general" source_file="model.py" source_line=12}
  tanh.1 = f32[8,4]{1,0} tanh(dot.1),
    metadata={op_name="jit(step)/tanh" source_file="model.py" source_line=13}
  t.1 = f32[4,8]{1,0} transpose(tanh.1), dimensions={1,0},
    metadata={op_name="jit(step)/transpose" source_file="model.py" source_line=14}
  zero = f32[] constant(0)
  ROOT sum.1 = f32[4]{0} reduce(t.1, zero), dimensions={1}, to_apply=region,
    metadata={op_name="jit(step)/reduce_sum" source_file="model.py" source_line=15}
}
"""

RIGHT = """HloModule jit_step, is_scheduled=true
add.9 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
fused {
  p.0 = f32[8,4]{1,0} parameter(0)
  tanh.2 = f32[8,4]{1,0} tanh(p.0),
    metadata={op_name="jit(step)/tanh" source_file="model.py" source_line=13}
  zero.2 = f32[] constant(0)
  ROOT sum.2 = f32[4]{0} reduce(tanh.2, zero.2), dimensions={0}, to_apply=add.9,
    metadata={op_name="jit(step)/reduce_sum" source_file="model.py" source_line=15}
}
ENTRY main {
  x = f32[8,16]{1,0} parameter(0)
  w = f32[16,4]{1,0} parameter(1)
  copy.3 = f32[16,4]{0,1} copy(w)
  dot.2 = f32[8,4]{1,0} dot(x, copy.3), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(step)/dot_general" source_file="model.py" source_line=12}
  ROOT fusion = f32[4]{0} fusion(dot.2), kind=kLoop, calls=fused
}
"""

CHANGED = (
    LEFT.replace("tanh(dot.1)", "logistic(dot.1)")
    .replace("dimensions={1,0}", 'dimensions={1,0}, backend_config={"tile":8}')
    .replace("constant(0)", "constant(1)")
    .replace("HloModule jit_step", "HloModule jit_step, num_partitions=2")
)


def programs(left: str, right: str) -> DiffRecord:
    modules = parse_module(left, "left.hlo"), parse_module(right, "right.hlo")
    program = diff_modules("jit_step", *modules)
    return DiffRecord(versions={}, left="left.hlo", right="right.hlo", kind="programs", programs=[program])


CASES = {
    "fused": programs(LEFT, RIGHT),
    "changed": programs(LEFT, CHANGED),
    "same": programs(LEFT, LEFT.replace("tanh.1", "act")),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("amount", ["", "quiet", "verbose"])
def test_programs(name: str, amount: str, golden: Callable[[str, str], None]) -> None:
    report = DiffReport(CASES[name], quiet=amount == "quiet", verbose=amount == "verbose")
    golden(f"report/diff_{'_'.join(filter(None, (name, amount)))}.txt", plain_text(report, 100))


@pytest.mark.parametrize("amount", ["", "quiet", "verbose"])
def test_results(
    amount: str, golden: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    wrong = values.copy()
    wrong[1, 2:5] *= 1.5
    wrong[3, 3] = np.nan
    np.savez("left.npz", out_0=values, out_1=np.arange(4), out_10=values, only=values)
    np.savez("right.npz", out_0=wrong, out_1=np.arange(4), out_10=values * np.float32(1 + 1e-7))
    results = list(diff_results(read_results("left.npz"), read_results("right.npz")))
    record = DiffRecord(
        versions={}, left="left.npz", right="right.npz", kind="results", results=results, only_left=["only"]
    )
    report = DiffReport(record, quiet=amount == "quiet", verbose=amount == "verbose")
    golden(f"report/{'_'.join(filter(None, ('diff_results', amount)))}.txt", plain_text(report, 100))


def test_changed_words_stand_out_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = Console(
        file=io.StringIO(), force_terminal=True, width=200, color_system="standard", highlight=False
    )
    text = render(console, DiffReport(CASES["changed"]))
    assert "\x1b[1;7;31mtanh\x1b[0m" in text
    assert "\x1b[1;7;32mlogistic\x1b[0m" in text
    assert "tanh" in plain_text(DiffReport(CASES["changed"]))
    assert "\x1b" not in plain_text(DiffReport(CASES["changed"]))
