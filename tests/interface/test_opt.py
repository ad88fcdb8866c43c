"""`hlotool opt`: programs in and out, passes, statistics, conversion, and what is said of mistakes."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.shell import Shell

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main
from hlotool.parser.proto.module import parse_module_proto
from hlotool.parser.reader import parse_module

PROGRAM = """HloModule add

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %e (x: f32[4,8], y: f32[4,8]) -> (f32[4], f32[4,8]) {
  %x = f32[4,8]{1,0} parameter(0)
  %y = f32[4,8]{1,0} parameter(1)
  %zero = f32[] constant(0)
  %zeros = f32[4,8]{1,0} broadcast(%zero), dimensions={}
  %m = f32[4,8]{1,0} subtract(%x, %zeros)
  %e = f32[4,8]{1,0} exponential(%m), metadata={op_name="jit(f)/exp"}
  %n = f32[4,8]{1,0} negate(%e)
  %dead = f32[4,8]{1,0} sine(%n)
  %r = f32[4]{0} reduce(%e, %zero), dimensions={1}, to_apply=%sum
  ROOT %t = (f32[4]{0}, f32[4,8]{1,0}) tuple(%r, %n)
}

"""
PIPELINE = "fix(simplify,dce),fuse"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "add.hlo"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.fixture
def opt(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("opt", "opt-1.json", capsys)


def printed(opt: Shell, schema: str, *arguments: object) -> dict[str, Any]:
    """The record that a successful command prints; it follows its schema."""
    assert opt(*arguments, "--json") == ExitCode.AGREE
    return opt.record(schema)


def test_without_passes_the_program_is_printed(opt: Shell, program: Path) -> None:
    assert opt(program) == ExitCode.AGREE
    assert opt.out == PROGRAM
    assert opt.error == ""


def test_passes(opt: Shell, program: Path, golden: Callable[[str, str], None]) -> None:
    assert opt(program, "--passes", PIPELINE) == ExitCode.AGREE
    golden("opt/fused.hlo", opt.out)
    assert opt.error == ""


def test_statistics_go_to_stderr(opt: Shell, program: Path, golden: Callable[[str, str], None]) -> None:
    assert opt(program, "--passes", PIPELINE, "--verbose") == ExitCode.AGREE
    assert opt.out.startswith("HloModule add")
    timeless = re.sub(r" +\d+\.\d  ", "  TIME  ", opt.error)
    golden("opt/statistics.txt", re.sub(r"instructions +ms", "instructions  ms", timeless))


def test_list(opt: Shell, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlotool.rewrite.passes.pipeline._entry_points", lambda: [])
    assert opt("--list-passes") == ExitCode.AGREE
    golden("opt/passes.txt", opt.out)
    record = printed(opt, "passes-1.json", "--list-passes")
    assert {"dce", "fuse", "fold"} <= {found["name"] for found in record["passes"]}
    assert record["pipelines"][0]["name"] == "despecialize"


def test_json(opt: Shell, program: Path, tmp_path: Path) -> None:
    record = printed(opt, "opt-1.json", program, "--passes", PIPELINE)
    assert record["changed"]
    assert parse_module(record["text"]).name == "add"
    assert [run["name"] for run in record["runs"]] == ["simplify", "dce", "simplify", "dce", "fuse"]
    assert record["runs"][0]["changes"] == {"subtract-zero": 1}
    written = printed(opt, "opt-1.json", program, "-o", tmp_path / "out.hlo")
    assert (written["text"], written["output"], written["changed"]) == ("", str(tmp_path / "out.hlo"), False)
    assert (tmp_path / "out.hlo").read_text(encoding="utf-8") == PROGRAM


def test_text_to_proto_and_back(opt: Shell, program: Path, tmp_path: Path) -> None:
    binary = tmp_path / "add.hlo.pb"
    assert opt(program, "--emit", "proto", "-o", binary) == ExitCode.AGREE
    assert parse_module_proto(binary.read_bytes()).name == "add"
    for arguments in ((binary,), (binary, "--from", "proto")):
        assert opt(*arguments, "--emit", "text") == ExitCode.AGREE
        body = opt.out.split("\n", 1)[1]
        assert body == PROGRAM.split("\n", 1)[1]


@pytest.mark.parametrize("form", [(), ("--from", "text")])
def test_stdin(opt: Shell, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PROGRAM.encode())))
    assert opt("-", *form) == ExitCode.AGREE
    assert opt.out == PROGRAM


def test_a_proto_on_stdin(opt: Shell, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opt(program, "--emit", "proto", "-o", tmp_path / "p.pb")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "p.pb").read_bytes())))
    assert opt("-") == ExitCode.AGREE
    assert "ROOT %t = (f32[4]{0}, f32[4,8]{1,0}) tuple(%r, %n)" in opt.out


def test_fuel(opt: Shell, program: Path) -> None:
    sizes = []
    for fuel in ("0", "1", "dce=0", "fuse=0"):
        record = printed(opt, "opt-1.json", program, "--passes", PIPELINE, "--pass-fuel", fuel)
        sizes.append([sum(run["changes"].values()) for run in record["runs"]])
    assert sizes[0] == [0, 0, 0]
    assert sum(sizes[1]) == 1
    assert sizes[2][:2] == [1, 0]
    assert sizes[3][-1] == 0


def test_print_before_and_after(opt: Shell, program: Path) -> None:
    assert (
        opt(program, "--passes", PIPELINE, "--print-before", "fuse", "--print-after", "all") == ExitCode.AGREE
    )
    heads = [line for line in opt.error.splitlines() if line.startswith("// ***")]
    assert heads == [
        "// *** after simplify ***",
        "// *** after dce ***",
        "// *** after fix ***",
        "// *** before fuse ***",
        "// *** after fuse ***",
    ]


def test_dumps_of_passes_are_replayed(
    opt: Shell,
    program: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    assert opt(program, "--passes", PIPELINE, "--dump-to", tmp_path / "dump") == ExitCode.AGREE
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert "module_0000.add.before_optimizations.txt" in names
    assert "module_0000.add.0002.fix.after_simplify.before_dce.txt" in names
    assert main(["run", str(tmp_path / "dump")]) == ExitCode.AGREE
    assert "1 result: 1 identical" in capsys.readouterr().out


def test_extract(opt: Shell, program: Path) -> None:
    assert opt(program, "--passes", "extract{instruction=e height=0}") == ExitCode.AGREE
    assert 'ROOT %e = f32[4,8]{1,0} exponential(%param_0), metadata={op_name="jit(f)/exp"}' in opt.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "which program? hlotool opt FILE"),
        (("FILE", "--passes", "dse"), "no pass 'dse'; there are: annotate-trip-counts, cse"),
        (("FILE", "--passes", "fuse{kind=x}"), "kind takes all|loop|input|multi-output"),
        (("FILE", "--pass-fuel", "fsue=3"), "no pass 'fsue'; there are: "),
        (("FILE", "--print-after", "dcee"), "; did you mean 'dce'?"),
        (("FILE", "--pass-fuel", "much"), "--pass-fuel 'much' is no whole number"),
        (("FILE", "--json", "--emit", "proto"), "say --output FILE"),
        (("FILE", "--passes", "extract{instruction=zz}"), "add has no instruction zz"),
        (("FILE", "--from", "proto"), "not a complete HloModuleProto"),
        (("nowhere.hlo",), "nowhere.hlo"),
        (("nowhere.hlo", "--from", "text"), "nowhere.hlo: No such file"),
    ],
)
def test_mistakes(opt: Shell, program: Path, arguments: tuple[str, ...], message: str) -> None:
    assert opt(*(str(program) if a == "FILE" else a for a in arguments)) == ExitCode.USAGE
    assert message in opt.error
    assert opt.out == ""


def test_broken_programs_are_not_passed_on(opt: Shell, tmp_path: Path) -> None:
    path = tmp_path / "bad.hlo"
    path.write_text(
        "HloModule m ENTRY e { x = f32[2] parameter(0) ROOT n = f32[3] negate(x) }", encoding="utf-8"
    )
    assert opt(path) == ExitCode.USAGE
    assert "negate must give f32[2]" in opt.error


def test_the_program_as_stablehlo(opt: Shell, tmp_path: Path) -> None:
    from support.oracle import need_xla

    need_xla()
    path = tmp_path / "p.hlo"
    path.write_text(PROGRAM)
    assert opt(path, "--passes", "fuse", "--emit", "stablehlo") == ExitCode.AGREE
    # The fusion that the pass made has no word in StableHLO: its instructions are written.
    assert "stablehlo.exponential" in opt.out
    assert "stablehlo.reduce" in opt.out
