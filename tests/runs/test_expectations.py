"""Comparisons that a program makes itself: `check.expect_*` of StableHLO's tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.replaying import replayed

from hlotool.interface.api.replay import replay
from hlotool.judge.verdicts import Verdict
from hlotool.parser.mlir.reader import parse_mlir
from hlotool.runs.expectations import unmet_expectations
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.task import find_tasks

TEXT = """func.func @f() {{
  %x = stablehlo.constant dense<{0}> : tensor<2xf32>
  {1}
  func.return
}}
"""
#: Three representable values above 1 and above 2.
NEAR = "[1.00000036, 2.00000072]"


@pytest.mark.parametrize(
    ("value", "check", "holds"),
    [
        ("[1.0, 2.0]", "check.expect_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>", True),
        (NEAR, "check.expect_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>", False),
        (NEAR, "check.expect_almost_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>", True),
        ("[1.001, 2.0]", "check.expect_almost_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>", False),
        ("0x7FC00000", "check.expect_eq %x, %x : tensor<2xf32>", True),
    ],
)
def test_what_holds(value: str, check: str, holds: bool) -> None:
    assert (unmet_expectations(parse_mlir(TEXT.format(value, check)), ()) == []) is holds


def test_close_counts_representable_values() -> None:
    up = np.nextafter(np.float32(1), np.float32(2))
    for _ in range(2):
        up = np.nextafter(up, np.float32(2))
    for value, holds in ((up, True), (np.nextafter(up, np.float32(2)), False)):
        text = f"""func.func @f() {{
  %x = stablehlo.constant dense<{float(value)!r}> : tensor<f32>
  %y = stablehlo.constant dense<1.0> : tensor<f32>
  stablehlo.custom_call @check.expect_close(%x, %y) {{has_side_effect = true}}
    : (tensor<f32>, tensor<f32>) -> ()
  return
}}
"""
        assert (unmet_expectations(parse_mlir(text), ()) == []) is holds


def test_what_does_not_hold_is_wrong(tmp_path: Path) -> None:
    check = "check.expect_eq_const %x, dense<[1.0, 3.0]> : tensor<2xf32>"
    (tmp_path / "f.mlir").write_text(TEXT.format("[1.0, 2.0]", check))
    [row] = replay(str(tmp_path / "f.mlir"), jobs=1).record.modules
    assert row.verdict.value == "wrong"
    assert "2.0, not 3.0 at (1,)" in row.reason


SUMS = """func.func @main() -> tensor<f32> {{
  %x = stablehlo.constant dense<[1.0e8, 1.0, -1.0e8, 3.0]> : tensor<4xf32>
  %y = stablehlo.iota dim = 0 : tensor<4xf32>
  %a = stablehlo.add %x, %y : tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %e = stablehlo.constant dense<{0}> : tensor<f32>
  stablehlo.custom_call @check.expect_close(%s, %e) {{has_side_effect = true}}
    : (tensor<f32>, tensor<f32>) -> ()
  return %s : tensor<f32>
}}
"""


@pytest.mark.parametrize(("expected", "verdict"), [(0.0, "rounding"), (16.0, "rounding"), (1.0e6, "wrong")])
def test_legal_executions_decide_on_what_is_not_close(expected: float, verdict: str, tmp_path: Path) -> None:
    """A sum that cancels depends on its order: what one order gives, another implementation may expect."""
    (tmp_path / "f.mlir").write_text(SUMS.format(expected))
    [row] = replay(str(tmp_path / "f.mlir"), jobs=1).record.modules
    assert row.verdict.value == verdict, row.reason
    assert row.reason.startswith("the program expects other values: line 9: check.expect_close: ")


def test_each_function_of_a_file_is_judged_or_the_named_one(tmp_path: Path) -> None:
    check = "check.expect_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>"
    right, wrong = TEXT.format("[1.0, 2.0]", check), TEXT.format("[1.0, 3.0]", check)
    (path := tmp_path / "tests.mlir").write_text(right + wrong.replace("@f", "@g"))
    assert {row.verdict for row in replayed(path, entry="f")} == {Verdict.AGREE}
    assert {row.verdict for row in replayed(path, entry="g")} == {Verdict.WRONG}
    assert len(find_tasks([str(path)], RunOptions(), [])) == 2
