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


# A fault of the counter or of its bound lets the loop go on for billions of iterations.
LOOP = """HloModule jit_f
body {{
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] sine(x)
  ROOT t = (s32[], f32[4]) tuple(j, y)
}}
more {{
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT p = pred[] compare(i, n), direction=NE
}}
ENTRY main {{
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(t), condition=more, body=body
  ROOT y = f32[4] get-tuple-element(w), index=1
}}"""


def test_what_is_known_when_the_time_is_over_is_reported(tmp_path: Path, mutate: Shell) -> None:
    """Some faults show at once, others never end."""
    file = tmp_path / "loop.hlo"
    file.write_text(LOOP.format(trips=5))
    record = mutate.json(file, "--cases", "200", "--timeout", "8", "--jobs", "1")
    assert record["exit_code"] == ExitCode.AGREE
    assert record["program"]["is_late"]
    count = len(record["program"]["mutants"])
    assert 0 < count < 200
    [note] = record["notes"]
    assert note.startswith(f"{count} of at most 200 faults were examined: 8 s were over")
    assert record["counts"]["killed"] > 0


def test_a_program_that_is_too_slow_says_what_to_do(tmp_path: Path, mutate: Shell) -> None:
    file = tmp_path / "long.hlo"
    file.write_text(LOOP.format(trips=2_000_000_000))
    assert mutate(file, "--timeout", "1", "--jobs", "1") == ExitCode.BACKEND_FAILED
    error = " ".join(mutate.error.split())
    assert "no fault was examined within 1 s, so nothing is decided (--timeout gives more" in error
    assert "not scaled: " in error
    assert "%" not in mutate.out


def test_a_program_that_is_too_large_runs_with_smaller_sizes(tmp_path: Path, mutate: Shell) -> None:
    file = tmp_path / "large.hlo"
    file.write_text(
        "HloModule large\nENTRY e { a = f32[400000,90000] parameter(0) b = f32[90000,400000] parameter(1) "
        "ROOT c = f32[400000,400000] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"
    )
    record = mutate.json(file, "--cases", "6", "--jobs", "1")
    assert record["counts"].get("killed", 0) > 0
    assert not record["program"]["is_late"]
    assert any(note.startswith("scaled: 400000 → ") for note in record["notes"])
    assert mutate(file, "--show-scale") == ExitCode.AGREE
    assert "400000 → " in mutate.out
