"""`hlotool releases`: the release with which it began; environments are made up here."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import hlotool
from hlotool.blame import releases
from hlotool.errors import BackendUnavailable, ExitCode, UsageError
from hlotool.interface.cli.main import main
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import ModuleRecord

KNOWN = ["0.4.38", "0.5.0", "0.5.3", "0.6.0", "0.7.0", "0.9.0.1", "0.10.0", "0.10.2"]


def verdicts(text: str) -> list[ModuleRecord | str]:
    """`+` right, `-` wrong, `.` not to be had."""
    row = ModuleRecord(path="f", name="f", verdict=Verdict.IDENTICAL)
    wrong = ModuleRecord(path="f", name="f", verdict=Verdict.WRONG, reason="it is 7")
    return [{"+": row, "-": wrong, ".": "no wheel"}[sign] for sign in text]


def searched(text: str, every: bool = False) -> tuple[str, str, list[str], int]:
    answers = dict(zip(KNOWN, verdicts(text), strict=True))
    tried: dict[str, releases.ReleaseRecord] = {}
    history = releases.searched(KNOWN, answers.__getitem__, tried, every)
    return *releases.told(KNOWN, history), len(tried)


@pytest.mark.parametrize(
    ("answers", "right", "wrong", "note"),
    [
        ("+++++---", "0.9.0.1", "0.10.0", ""),
        ("+-------", "0.4.38", "0.5.0", ""),
        ("+++++++-", "0.10.0", "0.10.2", ""),
        ("++++..--", "0.6.0", "0.10.0", "of no use: 0.7.0, 0.9.0.1"),
        ("++++++++", "", "", "no release of the range is wrong"),
        ("--------", "", "", "0.4.38 is wrong already"),
        (".-------", "", "", "0.5.0 is wrong already"),
        ("---+++++", "", "", "it was wrong and is right now"),
        ("........", "", "", "no release could be judged"),
    ],
)
def test_where_it_began(answers: str, right: str, wrong: str, note: str) -> None:
    if right:
        right = KNOWN[max(n for n in range(8) if answers[n] == "+")]
        wrong = KNOWN[min(n for n in range(8) if answers[n] == "-")]
    last, first, notes, tried = searched(answers)
    assert (last, first) == (right, wrong)
    assert note in "; ".join(notes)
    if "." not in answers:
        assert tried <= 6


def test_every_release_shows_what_was_repaired_in_between() -> None:
    last, first, notes, tried = searched("+-+++---", every=True)
    assert (last, first, tried) == ("0.7.0", "0.9.0.1", 8)
    assert "0.5.0 is wrong, 0.5.3 is right again, 0.9.0.1 is wrong" in notes[0]


def test_which_releases_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "jaxlib (0.10.2)\nAvailable versions: 0.10.2, 0.10.0, 0.9.0.1, 0.9.0rc1, 0.5.3, 0.4.38\n"
    monkeypatch.setattr(releases, "_called", lambda command: listed)
    assert releases.releases_between("0.5", "0.10.0") == ["0.5.3", "0.9.0.1", "0.10.0"]
    with pytest.raises(UsageError, match=r"there are 0\.4\.38 to 0\.10\.2"):
        releases.releases_between("0.11", "0.12")


def test_an_environment_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called: list[Sequence[str]] = []

    def stub(command: Sequence[str]) -> str:
        called.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
        return ""

    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path))
    monkeypatch.setattr(releases, "_called", stub)
    monkeypatch.setattr(releases.shutil, "which", lambda name: None)
    python = releases.environment("0.4.30")
    assert str(python).startswith(str(tmp_path / "environments"))
    assert [*called[1]][-3:] == ["jaxlib==0.4.30", "jax<=0.4.30", "numpy<2"]
    assert releases.environment("0.4.30") == python
    assert len(called) == 2
    releases.environment("0.7.0")
    assert "numpy<2" not in called[-1]


def test_what_pip_says_is_told() -> None:
    code = "import sys; print('ERROR: nothing of the kind', file=sys.stderr); sys.exit(1)"
    with pytest.raises(BackendUnavailable, match="ERROR: nothing of the kind"):
        releases._called([sys.executable, "-c", code])


@pytest.mark.xla
def test_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All releases are the one that is here; one cannot be had."""
    path = tmp_path / "f.hlo"
    path.write_text("HloModule f\nENTRY e { p = f32[4] parameter(0) ROOT r = f32[4] add(p, p) }\n")

    def environment(version: str) -> Path:
        if version == "0.6.0":
            raise BackendUnavailable("no wheel")
        return Path(sys.executable)

    monkeypatch.setattr(releases, "releases_between", lambda low, high: ["0.6.0", "0.7.0", "0.8.0"])
    monkeypatch.setattr(releases, "environment", environment)
    found = hlotool.releases(path, between="0.6.0..0.8.0", jobs=1)
    assert [(row.version, row.verdict) for row in found] == [
        ("0.6.0", ""),
        ("0.7.0", "identical"),
        ("0.8.0", "identical"),
    ]
    assert found.exit_code == ExitCode.AGREE
    assert main(["releases", str(path), "--between", "0.6.0..0.8.0"]) == ExitCode.AGREE
    assert "no release of the range is wrong" in capsys.readouterr().out

    def stopped(version: str) -> Path:
        if version == "0.8.0":
            raise KeyboardInterrupt
        return environment(version)

    monkeypatch.setattr(releases, "environment", stopped)
    assert main(["releases", str(path), "--between", "0.6.0..0.8.0"]) == ExitCode.INTERRUPTED
    shown = capsys.readouterr().out
    assert "0.7.0   ✓ identical" in shown
    assert "2 of 3 releases tried" in shown
    assert "interrupted; run the same command again to resume" in shown
    monkeypatch.setattr(releases, "environment", {"0.6.0": path, "0.8.0": Path(sys.executable)}.__getitem__)
    assert main(["releases", str(path), "--between", "0.6.0..0.8.0"]) == ExitCode.AGREE
    with pytest.raises(UsageError, match="two versions"):
        hlotool.releases(path, between="0.6.0")


def test_the_next_line_searches_the_pass_there() -> None:
    from rich.console import Console

    from hlotool.interface.report.releases import ReleasesReport

    record = releases.ReleasesRecord(
        versions={},
        paths=["d"],
        known=["1", "2"],
        last_right="1",
        first_wrong="2",
        interpreter="/env/python",
        inputs="in.npz",
        exit_code=1,
    )
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(ReleasesReport(record, False, False))
    last = console.export_text().splitlines()[-1]
    assert shlex.split(last) == [
        *("next:", "hlotool", "bisect", "d", "--inputs", "in.npz"),
        *("--backend", "xla:python=/env/python"),
    ]
