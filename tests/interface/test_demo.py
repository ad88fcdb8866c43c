"""`hlotool demo`: what it promises of its commands is so, and it leaves nothing behind but its folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import hlotool
from hlotool.errors import ExitCode, UsageError
from hlotool.interface.cli import main as cli
from hlotool.interface.cli.main import main


@pytest.fixture(autouse=True)
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_it_finds_the_fault_and_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    """The fault is what corpus/generate/demo.py plants; each exit code is compared with the promised one."""
    assert main(["demo", "--out", "here"]) == ExitCode.AGREE
    shown = capsys.readouterr().out
    for line in (
        "$ hlotool run dump --html page.html",
        "$ hlotool bisect dump",
        "pass fusion",
        "[recompilation]",
    ):
        assert line in shown
    assert "train.py:10" in shown
    assert Path("here/page.html").stat().st_size > 20_000
    assert Path(shown.split("$ cd ")[1].split("\n")[0]) == Path("here").resolve()
    assert sorted(os.listdir()) == ["cache", "here"]


def test_the_folder_and_the_commands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    found = hlotool.demo(out="there")
    assert found.exit_code is ExitCode.AGREE
    assert {path.name for path in Path(found.folder).iterdir()} == {"train.py", "dump"}
    assert [step.command.split()[1] for step in found.rows] == ["run", "bisect", "check", "explain"]
    assert "hlotool bisect dump" in str(found)
    assert main(["demo", "--json"]) == ExitCode.AGREE
    record = json.loads(capsys.readouterr().out)
    assert len(list(Path(record["folder"], "dump").iterdir())) == 8


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError, match="there is something in it"):
        hlotool.demo(out=str(tmp_path))


@pytest.mark.parametrize(
    ("ends_with", "code"),
    [(ExitCode.INTERRUPTED, ExitCode.INTERRUPTED), (ExitCode.AGREE, ExitCode.BACKEND_FAILED)],
)
def test_a_command_that_ends_otherwise_ends_it(
    ends_with: ExitCode, code: ExitCode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "main", lambda line: ends_with)
    assert main(["demo", "--out", "here"]) == code
    assert "bisect dump" not in capsys.readouterr().out


def test_the_dump_is_small() -> None:
    """It is in every wheel."""
    folder = Path(hlotool.demo(out="there").folder)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 45_000
