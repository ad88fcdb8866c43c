"""Commands other than `run` on a program that does not fit: stages, proofs, reductions, passes."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

import hlotool
from hlotool.runs.exact.result import Relation

#: A mean of tanh, and what three passes make of it: the second one takes another function.
FRONTEND = """HloModule mean

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

ENTRY e {
  x = f32[4096,48] parameter(0)
  z = f32[] constant(0)
  t = f32[4096,48] tanh(x)
  total = f32[48] reduce(t, z), dimensions={0}, to_apply=sum
  n = f32[] constant(4096)
  ns = f32[48] broadcast(n), dimensions={}
  ROOT mean = f32[48] divide(total, ns)
}
"""
RECIPROCAL = FRONTEND.replace("constant(4096)", "constant(0.000244140625)").replace("divide(", "multiply(")
REWRITTEN = RECIPROCAL.replace("tanh(x)", "sine(x)")
TRANSPOSED = REWRITTEN.replace(
    "  total = f32[48] reduce(t, z), dimensions={0}, to_apply=sum",
    "  u = f32[48,4096] transpose(t), dimensions={1,0}\n"
    "  total = f32[48] reduce(u, z), dimensions={1}, to_apply=sum",
)
#: A fault that is one of real numbers.
SUMMED = RECIPROCAL.replace("multiply(total", "add(total")
STAGES = {
    "before_optimizations": FRONTEND,
    "0001.simplification.after_pipeline-start.before_algsimp": RECIPROCAL,
    "0002.simplification.after_algsimp.before_rewriter": RECIPROCAL,
    "0003.simplification.after_rewriter.before_layout-assignment": REWRITTEN,
    "0004.simplification.after_layout-assignment.before_pipeline-end": TRANSPOSED,
    "cpu_after_optimizations": TRANSPOSED,
}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    for name, text in STAGES.items():
        (folder / f"module_0001.mean.{name}.txt").write_text(text)
    return folder


def test_the_pass_is_found_with_smaller_sizes(dump: Path) -> None:
    """All stages are related at once, so that each has the sizes of the others."""
    [culprit] = hlotool.bisect(str(dump), scale="64K", resume=False, try_on="none").culprits
    assert [candidate.name for candidate in culprit.candidates] == ["rewriter"]
    assert culprit.spot is not None
    assert culprit.spot.opcodes == ["sine"]
    assert "4096" not in culprit.spot.after


@pytest.mark.parametrize("is_healthy", [False, True])
def test_a_bisection_says_which_sizes_it_had(
    is_healthy: bool, dump: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a culprit, and of a module that it calls healthy."""
    from hlotool.interface.cli.main import main

    if is_healthy:
        for path in dump.iterdir():
            path.write_text(path.read_text().replace("sine(", "tanh("))
    command = ["bisect", str(dump), "--scale", "64K", "--no-resume", "--try-on", "none"]
    assert main(command) == (0 if is_healthy else 1)
    printed = capfd.readouterr()
    if is_healthy:
        assert "healthy with smaller sizes: 4096 → " in printed.err
    else:
        assert "scaled       4096 → " in printed.out


def test_a_proof_is_about_the_smaller_programs(tmp_path: Path) -> None:
    paths = {}
    for name, text in (("a", RECIPROCAL), ("b", TRANSPOSED.replace("sine(", "tanh(")), ("c", SUMMED)):
        paths[name] = tmp_path / f"{name}.txt"
        paths[name].write_text(text)
    equal = hlotool.prove(str(paths["a"]), str(paths["b"]), scale="64K")
    assert equal.relation is Relation.EQUAL
    assert equal.rows[0].scaled is not None
    assert {size.old for size in equal.rows[0].scaled.sizes} >= {4096}
    assert hlotool.prove(str(paths["a"]), str(paths["c"]), scale="64K").relation is Relation.UNEQUAL


def test_a_reduction_begins_with_the_smaller_program(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(FRONTEND)
    check = f"{shlex.quote(sys.executable)} -c \"import sys; sys.exit('tanh' in open(sys.argv[1]).read())\""
    record = hlotool.reduce(str(path), scale="64K", check=check, resume=False).record
    assert any(note.startswith("scaled: 4096 → ") for note in record.notes)
    assert record.instructions_after < record.instructions_before
    assert "tanh" in record.program
    assert "4096" not in record.program


def test_the_pass_makes_one_program_smaller(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(FRONTEND)
    result = hlotool.opt(str(path), passes="scale{memory=64K}")
    rows, columns = result.module.entry.parameters[0].dims
    assert 1 < rows < 4096
    assert 1 < columns <= 48
