"""What commands write for other tools, from the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

RIGHT = """HloModule f
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = f32[4] add(x, y), metadata={op_name="jit(f)/add" source_file="train.py" source_line=7}
}
"""
WRONG = RIGHT.replace("add(x, y)", "subtract(x, y)")


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dump of two modules, one of them wrong, in which commands are called."""
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "d"
    folder.mkdir()
    for number, after in enumerate((RIGHT, WRONG)):
        stem = folder / f"module_{number:04d}.jit_f"
        Path(f"{stem}.before_optimizations.txt").write_text(RIGHT, encoding="utf-8")
        Path(f"{stem}.cpu_after_optimizations.txt").write_text(after, encoding="utf-8")
    return folder


def sarif_rules(path: Path) -> list[str]:
    [run] = json.loads(path.read_text(encoding="utf-8"))["runs"]
    return [result["ruleId"] for result in run["results"]]


def test_a_run_writes_them_beside_its_report(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "d", "--jobs", "1", "--junit", "j.xml", "--sarif", "s.sarif", "--github"]
    assert main(command) == ExitCode.MISMATCH
    out, error = capsys.readouterr()
    assert "✗ wrong" in out
    annotations = [line for line in error.splitlines() if line.startswith("::")]
    assert len(annotations) == 1
    assert annotations[0].startswith(
        "::error file=train.py,line=7,title=hlotool%3A wrong in module_0001.jit_f::"
    )
    cases = ElementTree.parse("j.xml").findall(".//testcase")
    assert [len(case) for case in cases] == [0, 1]
    assert sarif_rules(Path("s.sarif")) == ["wrong"]


def test_the_other_commands_do_too(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = "d/module_0001.jit_f.before_optimizations.txt"
    after = "d/module_0001.jit_f.cpu_after_optimizations.txt"
    random = RIGHT.replace("add(x, y)", "rng(x, y), distribution=rng_uniform")
    Path("r.hlo").write_text(random, encoding="utf-8")
    for command, rule in (
        (["prove", before, after], "unequal"),
        (["diff", before, after], "program-differs"),
        (["bisect", "d", "--no-repro", "--jobs", "1"], "pass"),
        (["check", "r.hlo", "--only", "stateful-rng"], "stateful-rng"),
    ):
        assert main([*command, "--sarif", "s.sarif", "--junit", "j.xml"]) == ExitCode.MISMATCH
        assert sarif_rules(Path("s.sarif")) == [rule], command
        assert len(ElementTree.parse("j.xml").findall(".//failure")) == 1
    capsys.readouterr()


def test_stdout_takes_one_of_them_in_the_place_of_the_report(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in (
        ["--junit", "-", "--sarif", "-"],
        ["--json", "--sarif", "-"],
        ["--format=csv", "--junit=-"],
    ):
        assert main(["run", "d", *options]) == ExitCode.USAGE
        assert "stdout can take one of them: " in capsys.readouterr().err
    assert main(["run", "d", "--jobs", "1", "--junit", "-"]) == ExitCode.MISMATCH
    assert ElementTree.fromstring(capsys.readouterr().out).tag == "testsuites"


def test_a_place_that_is_not_there_is_refused_before_anything_runs(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "d", "--junit", "no/where/j.xml"]) == ExitCode.USAGE
    out, error = capsys.readouterr()
    assert out == ""
    assert error == "hlotool: error: --junit no/where/j.xml: there is no folder no/where\n"


def test_what_cannot_be_written_is_said_before_anything_runs(
    dump: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions do not hold for everybody, so that the system's answer is a planted one."""
    monkeypatch.setattr("hlotool.interface.cli.calling.os.access", lambda path, mode: path != ".")
    assert main(["run", "d", "--record", "new.json", "--junit", "d/old.xml"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "hlotool: error: --record new.json: cannot be written\n"


def test_formats(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(form: str) -> str:
        assert main(["run", "d", "--jobs", "1", "--no-further-sets", "--format", form]) == ExitCode.MISMATCH
        return capsys.readouterr().out

    def timeless(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"seconds": 0} for row in rows]

    record = json.loads(printed("json"))
    assert record["schema"] == "hlotool.run/1"
    lines = [json.loads(line) for line in printed("jsonl").splitlines()]
    assert timeless(lines) == timeless(record["modules"])
    rows = list(csv.DictReader(io.StringIO(printed("csv"))))
    assert [(row["state"], row["kind"], row["source_line"]) for row in rows] == [
        ("passed", "identical", ""),
        ("failed", "wrong", "7"),
    ]
    [cause] = record["causes"]
    assert rows[1]["cause"] == cause["id"]


def test_the_step_summary_is_appended_to(
    dump: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = dump.parent / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert main(["run", "d", "--jobs", "1", "--github", "--json"]) == ExitCode.MISMATCH
    assert json.loads(capsys.readouterr().out)["exit_code"] == 1
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n## hlotool: 1 passed · 1 failed\n")
    assert "<code>train.py" in text


def test_a_file_that_is_no_hlo_is_a_case_with_an_error(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal one line says it all; who reads the XML would miss it."""
    Path("x.hlo").write_text("HloModule x\nENTRY e {\n  broken\n}\n", encoding="utf-8")
    assert main(["run", "x.hlo", "--junit", "j.xml"]) == ExitCode.USAGE
    [case] = ElementTree.parse("j.xml").findall(".//error")
    assert "x.hlo:4:" in case.get("message", "")
    capsys.readouterr()


def test_only_what_is_new_fails(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The three lines of docs/reports.md; then another output is wrong."""
    run = ["run", "d", "--jobs", "1", "--no-further-sets"]
    assert main([*run, "--json"]) == ExitCode.MISMATCH
    Path("now.json").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["baseline", "update", "known.json", "now.json"]) == ExitCode.AGREE
    assert capsys.readouterr().out == "+ module_0001.jit_f: wrong\nknown.json: 1 known finding\n"
    assert main([*run, "--baseline", "known.json", "--junit", "j.xml"]) == ExitCode.AGREE
    assert "baseline known.json: 1 known, 0 new" in capsys.readouterr().out
    assert ElementTree.parse("j.xml").findall(".//failure") == []
    other = WRONG.replace("subtract", "divide")
    Path("d/module_0001.jit_f.cpu_after_optimizations.txt").write_text(other, encoding="utf-8")
    assert main([*run, "--baseline", "known.json"]) == ExitCode.MISMATCH
    out = capsys.readouterr().out
    assert "new: module_0001.jit_f: wrong" in out
    assert "fixed: module_0001.jit_f: wrong" in out


def test_a_baseline_that_is_none_is_refused_before_anything_runs(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("x.json").write_text("{", encoding="utf-8")
    assert main(["run", "d", "--baseline", "x.json"]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith(
        "hlotool: error: x.json: no baseline, and no record of --json: "
    )
    assert main(["check", "d", "--baseline", "none.json"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "hlotool: error: none.json: No such file or directory\n"


def test_a_page(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "d", "--jobs", "1", "--html", "p.html"]) == ExitCode.MISMATCH
    page = Path("p.html").read_text(encoding="utf-8")
    assert "1 wrong, 1 passed of 2 results" in page
    assert "train.py:7" in page
    capsys.readouterr()
