"""`hlotool mutate`: what inputs notice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.shell import Shell

from hlotool.errors import ExitCode

BRANCH = """HloModule jit_f
ENTRY main {
  x = f32[6] parameter(0)
  z = f32[] constant(0)
  b = f32[6] broadcast(z), dimensions={}
  p = pred[6] compare(x, b), direction=GT
  n = f32[6] negate(x)
  ROOT y = f32[6] select(p, x, n)
}"""


@pytest.fixture
def mutate(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("mutate", "mutate-1.json", capsys)


def test_constant_inputs_notice_little(tmp_path: Path, mutate: Shell) -> None:
    """Six equal positive numbers cannot tell places, and never take the other side of the select."""
    file = tmp_path / "branch.hlo"
    file.write_text(BRANCH)
    np.savez(tmp_path / "ones.npz", x=np.ones(6, np.float32))
    scores = []
    for extra in (["--inputs", str(tmp_path / "ones.npz")], ["--thorough"]):
        record = mutate.json(file, "--cases", "60", *extra)
        assert record["exit_code"] == ExitCode.AGREE
        assert record["schema"] == "hlotool.mutate/1"
        fates = [mutant["fate"] for mutant in record["program"]["mutants"]]
        assert record["counts"] == {fate: fates.count(fate) for fate in set(fates)}
        scores.append(record["score"])
    assert scores[0] < 0.8 < 0.95 < scores[1]


def test_survivors_are_named(tmp_path: Path, mutate: Shell) -> None:
    file = tmp_path / "branch.hlo"
    file.write_text(BRANCH)
    np.savez(tmp_path / "ones.npz", x=np.ones(6, np.float32))
    assert mutate(file, "--cases", "60", "--inputs", tmp_path / "ones.npz") == ExitCode.AGREE
    assert "not noticed" in mutate.out
    assert "(line 7)" in mutate.out
    assert f"planted in {file}, judged by " in mutate.out.replace("\n", "")
    assert "these inputs notice" in mutate.out


def test_several_programs_are_refused(tmp_path: Path, mutate: Shell) -> None:
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(BRANCH)
    (tmp_path / "module_0001.jit_g.before_optimizations.txt").write_text(BRANCH.replace("jit_f", "jit_g"))
    assert mutate(tmp_path) == ExitCode.USAGE
    assert "one program is needed" in mutate.error
