"""`corpus/found`: HLO in the forms in which people have it, and what each command makes of it."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.oracle import need_xla

from hlotool.errors import DumpError, ExitCode
from hlotool.interface.cli.main import main
from hlotool.ir.module import Module
from hlotool.ir.printer import print_module
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.stages import read_stage

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / "corpus" / "found"
FILES: list[dict[str, Any]] = tomllib.loads((FOUND / "EXPECTED.toml").read_text(encoding="utf-8"))["file"]
#: The expectations, and arguments of a program.
OTHERS = {"EXPECTED.toml", "module_0007.jit_f.before_optimizations.reduced.npz"}
#: What is read without XLA.
OWN = [file for file in FILES if "needs" not in file]


def named(files: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(file, id=file["name"]) for file in files]


@cache
def printed(source: str) -> str:
    return print_module(parse_module((ROOT / source).read_text(encoding="utf-8")))


def programs(file: dict[str, Any]) -> list[Module]:
    owners = open_dump(FOUND / file["name"]).modules
    return [read_stage(stage) for owner in owners for stage in (*owner.stages, *owner.others)]


def test_the_folder_holds_what_is_expected() -> None:
    assert {file["name"] for file in FILES} == {path.name for path in FOUND.iterdir()} - OTHERS
    assert len(FILES) >= 60


@pytest.mark.parametrize("file", named([file for file in OWN if "sources" in file]))
def test_what_is_found_is_the_program(file: dict[str, Any]) -> None:
    found = sorted(map(print_module, programs(file)))
    assert found == sorted(map(printed, file["sources"]))


@pytest.mark.parametrize("file", named([file for file in OWN if "programs" in file]))
def test_as_many_programs_as_there_are(file: dict[str, Any]) -> None:
    found = programs(file)
    assert len(found) == file["programs"]
    assert all(bool(module.cut) == file.get("is_cut", False) for module in found)


@pytest.mark.parametrize("file", named([file for file in FILES if file.get("is_cut")]))
def test_a_text_that_is_cut_is_never_run(file: dict[str, Any]) -> None:
    [owner] = open_dump(FOUND / file["name"]).modules
    with pytest.raises(
        DumpError, match=r"the text ends (?:within|before) .*the rest of the program is missing"
    ):
        load_stage(owner, owner.stages[0])


@pytest.mark.xla
@pytest.mark.parametrize("file", named([file for file in FILES if file.get("needs") == "jaxlib"]))
def test_stablehlo_is_read_by_jaxlib(file: dict[str, Any]) -> None:
    need_xla()
    [module] = programs(file)
    assert [str(p.shape) for p in module.entry.parameters] == ["f32[3,4]{1,0}", "f32[4,5]{1,0}"]
    assert {i.opcode for i in module.instructions()} >= {"dot", "tanh", "iota", "reduce"}


def test_every_form_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """All in one command; what is cut says so, the rest runs and has nothing to be compared with."""
    paths = [str(FOUND / file["name"]) for file in OWN]
    options = ["--opaque", "--elided", "generate"]
    # What is cut cannot be used.
    assert main(["run", *paths, *options, "--json"]) == ExitCode.USAGE
    modules = json.loads(capsys.readouterr().out)["modules"]
    expected = sum(len(file.get("sources", [])) or file["programs"] for file in OWN)
    assert len(modules) == expected
    cut = {file["name"] for file in OWN if file.get("is_cut")}
    for row in modules:
        is_cut = Path(row["path"]).name in cut
        assert row["verdict"] == ("bad input" if is_cut else "not compared"), row
    [given] = [row for row in modules if row["inputs"] and row["inputs"]["origin"] == "given"]
    assert given["path"].endswith("before_optimizations.reduced.hlo")


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_every_form_is_looked_at(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(FOUND / file["name"]) for file in OWN]
    main([command, *paths, "--json"])
    record = json.loads(capsys.readouterr().out)
    if command == "inspect":
        assert record["failures"] == []
        stages = [stage for module in record["modules"] for stage in module["stages"]]
        assert sum(bool(stage["cut"]) for stage in stages) == sum(file.get("is_cut", False) for file in OWN)
    else:
        assert record["failures"] == []
        cut = [finding for finding in record["findings"] if finding["rule"] == "cut-text"]
        assert len(cut) == sum(file.get("is_cut", False) for file in OWN)
        assert {f["rule"] for f in record["findings"] if f["severity"] == "error"} == {"cut-text"}


def test_what_is_whole_of_a_cut_text_can_be_extracted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = FOUND / "cut_in_a_line.loop.txt", tmp_path / "part.hlo"
    assert main(["extract", str(path), "zero", "-o", str(out)]) == ExitCode.AGREE
    assert "note: " in capsys.readouterr().err
    assert main(["run", str(out)]) == ExitCode.NOTHING_COMPARED


def test_errors_name_the_line_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the program is wrapped in."""
    good = (FOUND / "test_file.model_loop.cc").read_text(encoding="utf-8")
    bad = tmp_path / "bad.cc"
    bad.write_text(good.replace("tuple(next, twice)", "tuple(next, twist)"), encoding="utf-8")
    line = next(n for n, text in enumerate(bad.read_text().split("\n"), start=1) if "twist" in text)
    assert main(["run", str(bad)]) != ExitCode.AGREE
    shown = capsys.readouterr()
    assert f"{bad}:{line}" in shown.out + shown.err
