"""Replays of programs with smaller sizes, from the path to the record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.heard import Heard
from support.replaying import replayed

import hlotool
from hlotool.judge.verdicts import Verdict

BEFORE = """HloModule mean

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

AFTER = """HloModule mean

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

ENTRY e {
  x = f32[4096,48] parameter(0)
  z = f32[] constant(0)
  t = f32[4096,48] tanh(x)
  total = f32[48] reduce(t, z), dimensions={0}, to_apply=sum
  n = f32[] constant(0.000244140625)
  ns = f32[48] broadcast(n), dimensions={}
  ROOT mean = f32[48] multiply(total, ns)
}
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "module_0001.mean.before_optimizations.txt").write_text(BEFORE)
    (folder / "module_0001.mean.cpu_after_optimizations.txt").write_text(AFTER)
    return folder


def with_fault(dump: Path) -> None:
    path = dump / "module_0001.mean.cpu_after_optimizations.txt"
    path.write_text(path.read_text().replace("tanh(x)", "sine(x)"))


def test_what_fits_keeps_its_sizes(dump: Path) -> None:
    [row] = replayed(dump)
    assert row.scaled is None
    assert row.verdict in (Verdict.AGREE, Verdict.ROUNDING, Verdict.IDENTICAL)


def test_what_does_not_fit_gets_smaller_sizes_and_says_so(dump: Path) -> None:
    [row] = replayed(dump, scale="64K")
    assert row.verdict in (Verdict.AGREE, Verdict.ROUNDING, Verdict.IDENTICAL)
    assert row.scaled is not None
    assert {size.old for size in row.scaled.sizes} >= {4096}
    assert all(1 < size.new < size.old for size in row.scaled.sizes)
    assert row.scaled.scaled_memory < row.scaled.memory


def test_a_fault_shows_in_the_smaller_program(dump: Path) -> None:
    with_fault(dump)
    [row] = replayed(dump, scale="64K")
    assert row.verdict is Verdict.WRONG
    assert row.scaled is not None
    assert row.divergence is not None
    assert "sine(" in row.divergence.text


def test_given_arguments_are_cut_and_results_of_the_hardware_are_not_compared(
    dump: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    np.savez(tmp_path / "in.npz", x=rng.standard_normal((4096, 48)).astype(np.float32))
    np.savez(tmp_path / "out.npz", np.zeros(48, np.float32))
    rows = hlotool.replay(
        str(dump),
        scale="64K",
        inputs=str(tmp_path / "in.npz"),
        outputs=str(tmp_path / "out.npz"),
        cache=False,
    ).rows
    assert [row.verdict for row in rows if row.verdict is Verdict.WRONG] == []
    assert all(row.scaled is not None for row in rows)
    assert any("compared with nothing" in note for row in rows for note in row.notes)


@pytest.mark.parametrize(
    ("scale", "columns", "kept"),
    [("64K", 48, False), ("4096=7", 48, True), ("8G", 96_000, True)],
)
def test_a_verdict_on_smaller_sizes_is_kept_where_the_memory_does_not_matter(
    scale: str, columns: int, kept: bool, dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes that follow from the memory that is free may be others later; 96,000 columns take too long."""
    for path in dump.iterdir():
        path.write_text(path.read_text().replace("48]", f"{columns}]"))
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    found = []
    for number in range(2):
        heard = Heard()
        found.append(hlotool.replay(str(dump), scale=scale, timeout=20, course=heard).rows)
        assert heard.started_count == (0 if kept and number else 1)
    assert found[0][0].scaled == found[1][0].scaled
    assert found[0][0].scaled is not None


def test_a_verdict_with_values_on_disk_is_not_kept(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more memory there are further inputs."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        heard = Heard()
        [row] = hlotool.replay(str(dump), scale="4M", course=heard).rows
        assert row.in_place is not None
        assert heard.started_count == 1
