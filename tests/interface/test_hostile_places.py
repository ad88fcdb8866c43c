"""Hostile places: names that are no UTF-8, pipes, full disks, bombs, programs that grow."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from hlotool.errors import DumpError, ExitCode
from hlotool.interface.cli.main import main
from hlotool.ir import edit
from hlotool.parser.proto.module import parse_module_proto
from hlotool.parser.proto.schema import message_class
from hlotool.sources import open_files
from hlotool.sources.directory import open_dump

_PROGRAM = "HloModule a\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] add(p, p)\n}\n"

linux = pytest.mark.skipif(
    sys.platform != "linux", reason="names are any bytes, and disks are full, on Linux"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "a.hlo"
    path.write_text(_PROGRAM)
    return path


@linux
@pytest.mark.parametrize(
    "command", [["run"], ["check"], ["inspect"], ["bisect", "--no-repro", "--try-on", "none"]]
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_names_that_are_no_utf8(
    command: list[str], form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = os.fsencode(tmp_path / "d") + b"\xff"
    os.mkdir(folder)
    for stage in ("before_optimizations", "cpu_after_optimizations"):
        path = os.path.join(folder, b"module_0000.m\xfe.%s.txt" % stage.encode())
        with open(path, "w", encoding="ascii") as file:
            file.write(_PROGRAM)
    assert main([*command, os.fsdecode(folder), *form]) == ExitCode.AGREE
    out = capsys.readouterr().out
    if form:
        assert json.loads(out)["paths"] == [os.fsdecode(folder).replace("\udcff", r"\xff")]
    elif command[0] in ("run", "inspect"):
        assert r"m\xfe" in out


@linux
def test_a_name_of_a_missing_file_that_is_no_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", os.fsdecode(b"/none\xff")]) == ExitCode.USAGE
    assert r"/none\xff: no such file" in capsys.readouterr().err


@linux
@pytest.mark.parametrize("place", ["/dev/full", "/", "/dev/null/x"])
@pytest.mark.parametrize(
    "command",
    [
        ["opt", "--passes", "cse", "-o"],
        ["opt", "--passes", "cse", "--emit", "proto", "-o"],
        ["check", "--fix", "output-layout", "-o"],
    ],
)
def test_what_cannot_be_written_is_one_line(
    command: list[str], place: str, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command[0], str(program), *command[1:], place]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be written: " in line


def test_a_folder_of_passes_that_cannot_be_made(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", str(program), "--passes", "cse", "--dump-to", str(program)]) == ExitCode.USAGE
    assert "cannot be written: " in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize(
    "command",
    [
        ["opt", "PIPE", "--from", "text"],
        ["check", "PROGRAM", "--config", "PIPE"],
        ["run", "PROGRAM", "--inputs", "PIPE"],
        ["run", "PIPE"],
    ],
)
def test_nothing_waits_for_a_pipe(
    command: list[str], program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = program.with_name("pipe")
    os.mkfifo(pipe)
    words = {"PIPE": str(pipe), "PROGRAM": str(program)}
    assert main([words.get(word, word) for word in command]) == ExitCode.USAGE
    assert f"{pipe}: n" in capsys.readouterr().err  # not a file; neither a file nor a directory


@pytest.mark.parametrize(
    "text", [b"\xff", b"a = " + b"[" * 5000, b"a = " + b"1" * 5000, b"[check]\nskip = 3\n"]
)
def test_configurations_that_cannot_be_read(
    text: bytes, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = program.with_name("hlotool.toml")
    configuration.write_bytes(text)
    assert main(["check", str(program), "--config", str(configuration)]) == ExitCode.USAGE
    assert f"error: {configuration}:" in capsys.readouterr().err


def test_a_small_file_that_expands_to_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "_SMALL", 1 << 20)
    bomb = tmp_path / "a.txt.gz"
    bomb.write_bytes(gzip.compress(_PROGRAM.encode() + b" " * (8 << 20)))
    with pytest.raises(DumpError, match="expands to more than 1 MiB; expand it yourself"):
        open_dump(str(bomb))
    monkeypatch.undo()
    source = open_dump(str(bomb)).modules[0].stages[0].source
    assert len(source.read_bytes()) > 8 << 20
    monkeypatch.setattr(open_files, "_SMALL", 1 << 20)
    with pytest.raises(DumpError, match="expands to more than 1 MiB; expand it yourself to have it read"):
        source.read_bytes()


def _tree(levels: int) -> str:
    """A program that calls `add` 2 ** levels times."""
    text = "HloModule tree\n"
    for level in range(levels + 1):
        body = f"a = f32[4] call(p), to_apply=l{level - 1}\n  ROOT r = f32[4] call(a), to_apply=l{level - 1}"
        body = body if level else "ROOT r = f32[4] add(p, p)"
        entry = "ENTRY " if level == levels else ""
        text += f"{entry}l{level} {{\n  p = f32[4] parameter(0)\n  {body}\n}}\n"
    return text


@pytest.mark.parametrize("pipeline", ["inline", "flatten", "fix(inline,cse)"])
def test_a_program_does_not_grow_without_end(
    pipeline: str, program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(edit, "MOST_INSTRUCTIONS", 1000)
    monkeypatch.setattr(edit, "MOST_COMPUTATIONS", 1000)
    program.write_text(_tree(40))
    assert main(["opt", str(program), "--passes", pipeline]) == ExitCode.NOTHING_COMPARED
    assert "would grow to more than 1,000 " in capsys.readouterr().err
    program.write_text(_tree(6))
    assert main(["opt", str(program), "--passes", pipeline]) == ExitCode.AGREE


def test_folders_without_a_common_name_are_shown_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "diff"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "module_0000.m.before_optimizations.txt").write_text(_PROGRAM)
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", "good", "diff"]) == ExitCode.AGREE
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:3]]
    assert shown == ["good/a", "diff/a"]


def test_a_conditional_of_a_proto_that_calls_nothing_can_be_printed() -> None:
    module = message_class("HloModuleProto")()
    module.name, module.entry_computation_id = "m", 1
    computation = module.computations.add(name="e", id=1, root_id=2)
    for number, opcode in ((1, "parameter"), (2, "conditional")):
        made = computation.instructions.add(name=f"i{number}", opcode=opcode, id=number)
        made.shape.element_type = 4  # S32
    made.operand_ids.append(1)
    parsed = parse_module_proto(module.SerializeToString())
    assert "conditional(%i1)" in parsed.to_text()
