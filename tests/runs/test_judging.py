"""What a replay tells the judge, and what its records tell the reader."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.programs import DOUBLE, SQUARE, write_module
from support.replaying import replayed

from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import budget_limits

DOT = """HloModule jit_f

ENTRY e {
  x = f32[8,300] parameter(0)
  w = f32[300,6] parameter(1)
  ROOT d = f32[8,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def _arguments() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((8, 300)).astype(np.float32), rng.standard_normal((300, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("platform", "verdict"),
    [("cpu", Verdict.WRONG), ("sm_9.0_gpu", Verdict.WRONG), ("tpu", Verdict.ROUNDING)],
)
def test_what_hardware_may_multiply_in(platform: str, verdict: Verdict, tmp_path: Path) -> None:
    """A product of operands rounded to bf16, as TPUs make it by default; GPUs keep three more bits."""
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "module_0000.jit_f.before_optimizations.txt").write_text(DOT, encoding="utf-8")
    (dump / f"module_0000.jit_f.{platform}_after_optimizations.txt").write_text(DOT, encoding="utf-8")
    x, w = _arguments()
    rounded = [a.astype(ml_dtypes.bfloat16).astype(np.float32) for a in (x, w)]
    np.savez(tmp_path / "in.npz", x=x, w=w)
    np.savez(tmp_path / "out.npz", out=rounded[0] @ rounded[1])
    rows = replayed(dump, inputs=str(tmp_path / "in.npz"), outputs=str(tmp_path / "out.npz"))
    assert [row.verdict for row in rows] == [Verdict.IDENTICAL, verdict]


def test_a_record_holds_what_the_verdict_rests_on(tmp_path: Path) -> None:
    (tmp_path / "f.hlo").write_text(DOT, encoding="utf-8")
    x, w = _arguments()
    np.savez(tmp_path / "in.npz", x=x, w=w)
    np.savez(tmp_path / "out.npz", out=(x @ w) * np.float32(1.001))
    inputs, outputs = (str(tmp_path / name) for name in ("in.npz", "out.npz"))
    [row] = replayed(tmp_path / "f.hlo", inputs=inputs, outputs=outputs, seed=4)
    [leaf] = row.leaves
    assert leaf.verdict is Verdict.WRONG
    evidence = leaf.evidence
    assert evidence is not None
    assert (evidence.seed, evidence.pattern, evidence.beyond) == (4, "constant factor", leaf.total)
    assert evidence.members >= 5
    assert evidence.ratio is not None
    assert evidence.ratio > 10
    assert "1.001 times" in row.reason
    [again] = replayed(tmp_path / "f.hlo", inputs=inputs, outputs=outputs, seed=4)
    assert again.leaves == row.leaves


def test_two_programs_are_compared_in_f64(tmp_path: Path) -> None:
    write_module(tmp_path, 0, DOUBLE, SQUARE)
    [row] = replayed(tmp_path)
    assert row.leaves[0].evidence is not None
    assert row.leaves[0].evidence.wide == "outside"


@pytest.mark.parametrize(
    ("text", "limits"), [("30", (inf, 30.0)), ("0.5", (inf, 0.5)), ("5x", (10.0, inf)), ("0x", (0.0, inf))]
)
def test_a_budget_is_seconds_or_a_multiple_of_the_runs(text: str, limits: tuple[float, float]) -> None:
    assert budget_limits(text, 2) == limits


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "infx", "5y"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(ValueError, match=r"budget|float"):
        budget_limits(text, 2)
