"""What a path may be: files that a shell's pattern names, files that hlotool writes, standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

PROGRAM = """HloModule jit_f
ENTRY main {
  x = f32[2] parameter(0)
  ROOT y = f32[2] OPCODE(x, x)
}
"""
DOUBLE, SQUARE = PROGRAM.replace("OPCODE", "add"), PROGRAM.replace("OPCODE", "multiply")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Two modules, one of them compiled wrongly, with what else lies in a dump directory."""
    folder = tmp_path / "dump"
    folder.mkdir()
    for number, after in ((2, DOUBLE), (4, SQUARE)):
        title = f"module_{number:04d}.jit_f"
        (folder / f"{title}.before_optimizations.txt").write_text(DOUBLE)
        (folder / f"{title}.cpu_after_optimizations.txt").write_text(after)
        (folder / f"{title}.cpu_after_optimizations-buffer-assignment.txt").write_text("BufferAssignment:")
        (folder / f"{title}.debug_options").write_text("")
    (folder / "before_mark_for_compilation.pbtxt").write_text("node {}")
    return folder


def files(folder: Path, pattern: str) -> list[str]:
    """What a shell makes of `DIR/PATTERN`."""
    return sorted(map(str, folder.glob(pattern)))


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def rows(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[tuple[str, str, str]]:
    """Name, verdict and origin of the inputs of each row of a run."""
    main(["run", *map(str, arguments), "--json"])
    record = json.loads(capsys.readouterr().out)
    return [
        (row["name"], row["verdict"], (row["inputs"] or {}).get("origin", "")) for row in record["modules"]
    ]


@pytest.mark.parametrize("pattern", ["*.txt", "*"])
def test_the_files_of_a_folder_are_the_folder(
    pattern: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = rows(capsys, dump)
    assert [verdict for _, verdict, _ in expected] == ["identical", "wrong"]
    assert rows(capsys, *files(dump, pattern)) == expected


def test_check_and_inspect_take_them_as_the_folder(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, counted in (("check", ("modules", "files")), ("inspect", ("functions",))):
        found = []
        for paths in ([str(dump)], files(dump, "*.txt")):
            main([command, *paths, "--json"])
            record = json.loads(capsys.readouterr().out)
            found.append([record[name] for name in counted])
        assert found[0] == found[1]


def test_files_of_two_folders_stay_apart(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in dump.glob("module_0004*"):
        (other / path.name).write_bytes(path.read_bytes())
    found = rows(capsys, *files(dump, "*0002*.txt"), *files(other, "*.txt"))
    assert [verdict for _, verdict, _ in found] == ["identical", "wrong"]


def test_elided_constants_are_found_beside_files_of_a_pattern(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = corpus / "jax" / "protos_beside_text"
    assert rows(capsys, *files(folder, "*.txt")) == rows(capsys, folder)


@pytest.fixture
def unusable(tmp_path: Path) -> list[str]:
    """Paths without a program: a text, an empty folder, one without HLO, one that is not there."""
    (tmp_path / "notes.md").write_text("# Notes\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "notes.md").write_text("# Notes\n")
    return [str(tmp_path / name) for name in ("notes.md", "empty", "without", "missing")]


def test_a_path_without_hlo_is_a_row(
    dump: Path, unusable: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = rows(capsys, dump)
    assert rows(capsys, dump, *unusable) == [*expected, *((path, "bad input", "") for path in unusable)]
    healthy = files(dump, "*0002*.txt")
    assert main(["run", *healthy, *unusable]) == ExitCode.USAGE
    assert "notes.md: not HLO" in capsys.readouterr().out
    assert main(["run", str(dump), *unusable]) == ExitCode.MISMATCH
    assert main(["run", *unusable]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert all(path in said for path in unusable)


def test_check_and_bisect_go_on_without_it(
    dump: Path, unusable: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    healthy = files(dump, "*0002*.txt")
    assert main(["check", *healthy, *unusable, "--json"]) == ExitCode.USAGE
    record = json.loads(capsys.readouterr().out)
    assert [failure["file"] for failure in record["failures"]] == unusable
    assert record["modules"] == 1
    assert main(["bisect", *healthy, *unusable, "--json"]) == ExitCode.INCONCLUSIVE
    record = json.loads(capsys.readouterr().out)
    assert record["healthy"] == ["module_0002.jit_f"]
    assert [(m["path"], m["verdict"]) for m in record["modules"]] == [
        (path, "bad input") for path in unusable
    ]


BROKEN = {
    "cut.hlo": DOUBLE[:60].encode(),
    "empty.hlo": b"",
    "bytes.hlo": b"\x89\0\xff not HLO",
    "packed.hlo.gz": b"no gzip",
    "module_0005.jit_g.before_optimizations.txt": b"\0",
    "module_0006.jit_g.hlo.pb": b"\xff" * 9,
}


def test_a_broken_file_in_a_folder_is_a_row(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = rows(capsys, dump)
    for name, content in BROKEN.items():
        (dump / name).write_bytes(content)
    found = rows(capsys, dump)
    assert [row for row in found if row[1] != "bad input"] == expected
    assert sorted(name for name, verdict, _ in found if verdict == "bad input") == sorted(
        name.removesuffix(".before_optimizations.txt") for name in BROKEN
    )


@pytest.mark.parametrize(
    "name",
    [
        "module_0002.jit_f.before_optimizations.reduced.hlo",
        "module_0002.jit_f.after_spmd_partitioner.txt",
        "module_0002.jit_f.my.notes.txt",
        "kept.hlo.orig",
    ],
)
def test_a_named_file_is_one_program(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.write_text(DOUBLE)
    [(_, verdict, _)] = rows(capsys, path)
    assert verdict == "not compared"
    assert main(["extract", str(path), "y", "-o", str(tmp_path / "cut.hlo")]) == ExitCode.AGREE


def test_what_extract_writes_is_run_on_the_values_beside_it(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "in.npz", x=np.float32([3, 4]))
    source = dump / "module_0002.jit_f.before_optimizations.txt"
    assert main(["extract", str(source), "y", "--inputs", "in.npz"]) == ExitCode.AGREE
    capsys.readouterr()
    main(["run", "module_0002.jit_f.before_optimizations.extracted.hlo", "--json"])
    [row] = json.loads(capsys.readouterr().out)["modules"]
    assert row["inputs"]["origin"] == "given"
    assert row["inputs"]["description"].endswith("before_optimizations.extracted.npz")
    assert row["outputs"][0]["first"] == ["6", "8"]


def test_the_programs_of_a_bundle_get_its_arguments(tmp_path: Path) -> None:
    from hlotool.blame.repro import bundle
    from hlotool.sources.directory import arguments_beside

    pairs = {
        bundle.PROGRAM: bundle.INPUTS,
        bundle.AFTER: bundle.INPUTS,
        bundle.PASS_BEFORE: bundle.PASS_INPUTS,
        bundle.PASS_AFTER: bundle.PASS_INPUTS,
        bundle.KERNEL: bundle.KERNEL_INPUTS,
    }
    for name in (bundle.FACTS, *pairs.values()):
        (tmp_path / name).write_bytes(b"")
    for program, values in pairs.items():
        assert arguments_beside(str(tmp_path / program)) == str(tmp_path / values)
    (tmp_path / bundle.FACTS).unlink()
    assert arguments_beside(str(tmp_path / bundle.PROGRAM)) == ""


@pytest.mark.parametrize(
    ("command", "after", "code"),
    [
        ("run", [], ExitCode.NOTHING_COMPARED),
        ("check", [], ExitCode.AGREE),
        ("inspect", [], ExitCode.AGREE),
        ("diff", ["FILE"], ExitCode.MISMATCH),
        ("prove", ["FILE"], ExitCode.MISMATCH),
        ("opt", ["--passes", "cse"], ExitCode.AGREE),
        ("extract", ["y"], ExitCode.AGREE),
        ("bisect", ["--no-repro"], ExitCode.NOTHING_COMPARED),
        ("reduce", ["--check", "true"], ExitCode.USAGE),
    ],
)
def test_standard_input(
    command: str,
    after: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text(SQUARE)
    stdin(monkeypatch, DOUBLE)
    assert main([command, "-", *after]) == code
    shown = capsys.readouterr()
    assert "no such file" not in shown.err + shown.out
    if command == "extract":
        assert Path("stdin.extracted.hlo").is_file()


def test_messages_call_standard_input_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, DOUBLE.replace("add(x, x)", "add(x, z)"))
    assert main(["run", "-"]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("hlotool: error: <stdin>:4:")


def test_every_stage_against_the_first(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [verdict for _, verdict, _ in rows(capsys, dump, "--stages", "*")] == ["identical", "wrong"]
