"""What a program really returned, beside what its last stage gives on the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

PROGRAM = """HloModule jit_f
ENTRY main {
  x = f32[4] parameter(0)
  big = f32[4] constant({1e30, 1e30, 1e30, 1e30})
  small = f32[4] constant({1e-30, 1e-30, 1e-30, 1e-30})
  u = f32[4] multiply(x, big)
  v = f32[4] multiply(u, FIRST)
  ROOT w = f32[4] multiply(v, SECOND)
}
"""


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The last stage multiplies in another order, in which 1e60 occurs: more than f32 holds."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "dump"
    folder.mkdir()
    for stage, first, second in (("before", "small", "big"), ("cpu_after", "big", "small")):
        text = PROGRAM.replace("FIRST", first).replace("SECOND", second)
        (folder / f"module_0000.jit_f.{stage}_optimizations.txt").write_text(text)
    np.savez(tmp_path / "in.npz", x=np.ones(4, np.float32))
    return folder


def outcome(
    command: str, dump: Path, returned: float, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    np.savez("out.npz", np.full(4, returned, np.float32))
    code = main([command, str(dump), "--inputs", "in.npz", "--outputs", "out.npz", "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def test_what_the_last_stage_gives_too_is_not_blamed_on_code(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = outcome("run", dump, np.inf, capsys)
    assert code == ExitCode.INCONCLUSIVE
    stage, result = found["modules"]
    assert (stage["verdict"], result["verdict"]) == ("range", "range")
    assert result["stage_tested"] == "result"
    assert "the same as cpu_after_optimizations gives" in result["reason"]
    code, found = outcome("bisect", dump, np.inf, capsys)
    assert code == ExitCode.INCONCLUSIVE
    assert (found["culprits"], found["healthy"]) == ([], [])
    assert "from cpu_after_optimizations on range: " in found["modules"][0]["reason"]


def test_what_no_stage_gives_is(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = outcome("bisect", dump, 3, capsys)
    assert code == ExitCode.MISMATCH
    [culprit] = found["culprits"]
    assert culprit["level"] == "codegen"


def test_flags_that_allow_it_are_told(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "module_0000.jit_f.debug_options"
    (dump / name).write_text('xla_cpu_enable_fast_math: false\nxla_dump_to: "d"\n')
    assert all(not row["notes"] for row in outcome("run", dump, np.inf, capsys)[1]["modules"])
    (dump / name).write_text("xla_cpu_enable_fast_math: true\nxla_cpu_fast_math_honor_infs: false\n")
    rows = outcome("run", dump, np.inf, capsys)[1]["modules"]
    told = "compiled with xla_cpu_enable_fast_math=true, xla_cpu_fast_math_honor_infs=false"
    assert [row["notes"] for row in rows] == [[f"{told}: NaN and infinity need not be kept"]] * 2


def test_a_partitioned_stage_is_a_reference_on_global_inputs(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stages of this program agree; the last one is for each of eight devices."""
    folder = corpus / "jax/sharded_mlp"
    given = ["--inputs", str(folder / "inputs.npz")]
    assert main(["run", str(folder), "--stages", "cpu_after*,before*", *given]) == ExitCode.AGREE


def test_what_a_backend_returns_inherits_from_the_stage_that_gives_the_same(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", str(dump), "--inputs", "in.npz", "--backend", "numpy:excess", "--json"])
    [row] = json.loads(capsys.readouterr().out)["modules"]
    assert row["verdict"] == "range"
    assert row["tested"].startswith("numpy:excess")
    assert "the same as cpu_after_optimizations gives" in row["reason"]
    assert row["divergence"] is None
