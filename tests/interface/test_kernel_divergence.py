"""Faults in programs that generated kernels execute: found, named, bisected as with any other backend."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.shell import Shell

from hlotool.errors import ExitCode

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


def test_the_first_wrong_instruction_inside_of_a_kernel(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Shell("run", "run-1.json", capsys)
    record = run.json(corpus / "planted" / "slices_off_by_one", "--backend", "cuda-emu", "--first-divergence")
    [row] = record["modules"]
    assert record["exit_code"] == ExitCode.MISMATCH
    divergence = row["divergence"]
    assert divergence["source"]["instruction"] == "slice.7"
    assert divergence["around"] == ["fusion %pad_slice_fusion"]
    assert (divergence["repair"], divergence["repaired"]) == ("the expected value", 1)


def test_stages_run_on_generated_kernels(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bisect = Shell("bisect", "bisect-1.json", capsys)
    path = corpus / "planted" / "slices_off_by_one"
    record = bisect.json(path, "--reference", "cuda-emu", "--no-repro", "--quiet")
    [culprit] = record["culprits"]
    assert culprit["level"] == "pass"
    assert culprit["confirmed"]


def test_the_next_command_is_one_that_exists(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A difference between backends is no matter of passes: the values are what to look at."""
    run = Shell("run", "run-1.json", capsys)
    path = corpus / "planted" / "slices_off_by_one"
    assert run(path, "--backend", "cuda-emu", "--no-first-divergence") == ExitCode.MISMATCH
    following = run.out.splitlines()[-1]
    assert following.startswith(f"next: hlotool run {path} --backend cuda-emu")
    assert "--save-outputs" in following
    assert run(path, "--first-divergence") == ExitCode.MISMATCH
    assert run.out.splitlines()[-1] == f"next: hlotool bisect {path}"
