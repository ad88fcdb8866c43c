"""`--inputs` and `--outputs`: files that are missing, and folders with a file for each module."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

DOUBLE = """HloModule jit_f
ENTRY main {
  x = f32[2] parameter(0)
  ROOT y = f32[2] add(x, x)
}
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Two programs of one name and a third one."""
    folder = tmp_path / "dump"
    folder.mkdir()
    for title in ("module_0002.jit_f", "module_0006.jit_f", "module_0008.jit_g"):
        for stage in ("before_optimizations", "cpu_after_optimizations"):
            text = DOUBLE.replace("jit_f", title.partition(".")[2])
            (folder / f"{title}.{stage}.txt").write_text(text)
    return folder


def saved(folder: Path, name: str, value: float) -> None:
    folder.mkdir(exist_ok=True)
    np.savez(folder / name, x=np.full(2, value, np.float32))


@pytest.mark.parametrize("command", ["run", "bisect", "reduce", "extract"])
@pytest.mark.parametrize("inputs", ["nowhere.npz", "nowhere.py:make"])
def test_a_file_that_is_missing_is_one_error_before_anything_runs(
    command: str, inputs: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["y"] if command == "extract" else []
    assert main([command, str(dump), *names, "--inputs", inputs]) == ExitCode.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count(f"{inputs}: no such file") == 1


def test_each_module_gets_the_file_with_its_title(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    # Only the module's own values give what `outputs` hold: twice as much.
    for title, value in (("module_0002.jit_f", 1), ("module_0006.jit_f", 2), ("jit_g", 3)):
        saved(folder, f"{title}.npz", value)
        saved(tmp_path / "out", f"{title}.npz", 2 * value)
    given = ["--inputs", str(folder), "--outputs", str(tmp_path / "out")]
    assert main(["run", str(dump), *given, "--json"]) == ExitCode.AGREE
    rows = json.loads(capsys.readouterr().out)["modules"]
    assert [row["verdict"] for row in rows] == ["identical"] * 6
    used = {(row["name"], Path(row["inputs"]["description"].removeprefix("from ")).name) for row in rows}
    assert used == {
        ("module_0002.jit_f", "module_0002.jit_f.npz"),
        ("module_0006.jit_f", "module_0006.jit_f.npz"),
        ("module_0008.jit_g", "in"),
    }


def test_a_name_that_several_modules_have_is_none(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("jit_f", "jit_g"):
        saved(tmp_path / "in", f"{name}.npz", 1)
    main(["run", str(dump), "--inputs", str(tmp_path / "in"), "--json"])
    rows = json.loads(capsys.readouterr().out)["modules"]
    assert [row["verdict"] for row in rows] == ["bad input", "bad input", "identical"]
    assert "call it module_0002.jit_f.npz" in rows[0]["reason"]
