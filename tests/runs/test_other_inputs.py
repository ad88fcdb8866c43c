"""Where generated inputs make nothing but NaN on both sides, others are taken; a NaN on one side stays."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotool
from hlotool.interface.report.next_command import command_after_run
from hlotool.judge.verdicts import Verdict

#: The square root of a sum of sines, which is negative for seeds 0 and 2, and positive between 0 and 1.
_PROGRAM = """HloModule f
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
ENTRY e {{ x = f32[8] parameter(0) z = f32[] constant(0) n = f32[8] sine(x)
  r = f32[] reduce(n, z), dimensions={{0}}, to_apply=add w = f32[] {root}
  b = f32[8] broadcast(w), dimensions={{}} m = f32[8] multiply({product})
  ROOT o = (f32[8], f32[8]) tuple(m, x) }}
"""


def _dump(folder: Path, root: str = "sqrt(r)", product: str = "b, x") -> Path:
    before, after = (_PROGRAM.format(root=r, product=p) for r, p in (("sqrt(r)", "x, b"), (root, product)))
    (folder / "module_0001.f.before_optimizations.txt").write_text(before)
    (folder / "module_0001.f.cpu_after_optimizations.txt").write_text(after)
    return folder


@pytest.mark.parametrize("seed", [0, 2])
def test_numbers_instead_of_nan(tmp_path: Path, seed: int) -> None:
    [row] = hlotool.replay(_dump(tmp_path), seed=seed).rows
    assert row.inputs is not None
    assert row.inputs.input_range == (0.125, 1)
    assert f"with seed {seed} alone 1 output is nothing but NaN" in row.inputs.description
    assert row.verdict is Verdict.IDENTICAL
    assert not row.nothing_but_nan


@pytest.mark.parametrize("seed", [1, 3])
def test_inputs_that_make_numbers_stay(tmp_path: Path, seed: int) -> None:
    [row] = hlotool.replay(_dump(tmp_path), seed=seed).rows
    assert row.inputs is not None
    assert (row.inputs.input_range, row.inputs.description) == (None, f"generated with seed {seed}")


def test_a_nan_that_one_side_has_not_is_a_difference(tmp_path: Path) -> None:
    [row] = hlotool.replay(_dump(tmp_path, root="abs(r)"), further_sets=False).rows
    assert row.inputs is not None
    assert row.inputs.description == "generated with seed 0"
    assert row.verdict is Verdict.WRONG


def test_the_next_command_has_the_inputs_that_were_taken(tmp_path: Path) -> None:
    """On its numbers the difference shows, which NaN would hide."""
    result = hlotool.replay(_dump(tmp_path, product="b, b"), further_sets=False)
    [row] = result.rows
    assert row.verdict is Verdict.WRONG
    assert "--input-range=0.125,1" in command_after_run(result.record, verbose=False)


def test_what_is_always_nan_is_said(tmp_path: Path) -> None:
    entry = "x = f32[2] parameter(0) n = f32[2] subtract(x, x) ROOT d = f32[2] divide(n, n)"
    text = f"HloModule f ENTRY e {{ {entry} }}"
    for stage in ("before_optimizations", "cpu_after_optimizations"):
        (tmp_path / f"module_0001.f.{stage}.txt").write_text(text)
    [row] = hlotool.replay(tmp_path, further_sets=False).rows
    assert row.nothing_but_nan == [[]]
    assert row.inputs is not None
    assert row.inputs.input_range is None
