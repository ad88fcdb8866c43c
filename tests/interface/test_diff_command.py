"""`hlotool diff`: outputs, exit codes, bad input."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.programs import BROKEN, DOUBLE, SQUARE, SUM, write_module
from support.shell import Shell

from hlotool.errors import ExitCode


@pytest.fixture
def diff(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("diff", "diff-1.json", capsys)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {}
    for name, text in (("double", DOUBLE), ("sum", SUM), ("square", SQUARE), ("broken", BROKEN)):
        found[name] = tmp_path / f"{name}.hlo"
        found[name].write_text(text, encoding="utf-8")
    return found


def test_two_files(diff: Shell, files: dict[str, Path]) -> None:
    assert diff(files["sum"], files["square"]) == ExitCode.MISMATCH
    assert "- %y = f32[4]{0} add(%x, %x)\n" in diff.out
    assert "+ %y = f32[4]{0} multiply(%x, %x)  # model.py:7\n" in diff.out
    assert "2 matched: 1 changed" in diff.out
    assert "\x1b" not in diff.out


def test_a_file_and_itself_under_other_names(diff: Shell, files: dict[str, Path], tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.hlo"
    renamed.write_text(SUM.replace("y = ", "total.7 = ").replace("main.1", "main.9"), encoding="utf-8")
    record = diff.json(files["sum"], renamed)
    [program] = record["programs"]
    assert record["exit_code"] == ExitCode.AGREE
    assert (program["is_same"], program["renamed"], program["computations"]) == (True, 1, [])
    assert diff(files["sum"], renamed) == ExitCode.AGREE
    assert diff.out == "1 pair of programs: 1 the same, 0 differ\n"
    assert diff(files["sum"], renamed, "--verbose") == ExitCode.AGREE
    assert "the same: 2 instructions (1 renamed)" in diff.out


def test_the_record_says_what_changed(diff: Shell, files: dict[str, Path]) -> None:
    [program] = diff.json(files["sum"], files["square"])["programs"]
    assert (program["left_instructions"], program["changed"], program["only_left"]) == (2, 1, 0)
    [computation] = program["computations"]
    [hunk] = computation["hunks"]
    assert [line["status"] for line in hunk] == ["same", "changed"]
    assert hunk[1]["changes"] == [{"what": "opcode", "left": "add", "right": "multiply"}]
    assert hunk[1]["source"]["file_line"] == 7
    counts = {row["opcode"]: row["changed"] for row in program["opcodes"]}
    assert counts == {"multiply": 1, "parameter": 0}


def test_context(diff: Shell, files: dict[str, Path]) -> None:
    diff(files["sum"], files["square"], "-U", 0)
    assert "parameter(0)" not in diff.out
    assert diff(files["sum"], files["square"], "-U", "few") == ExitCode.USAGE


def test_two_dumps(diff: Shell, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    write_module(one, 0, DOUBLE, SUM)
    write_module(one, 3, DOUBLE, SUM, "jit_g")
    # Numbers shift when another program is compiled before.
    write_module(other, 5, DOUBLE, SQUARE)
    write_module(other, 9, DOUBLE, SUM, "jit_h")
    record = diff.json(one, other)
    assert [(p["name"], p["is_same"]) for p in record["programs"]] == [
        ("module_0000.jit_f before optimizations", True),
        ("module_0000.jit_f after optimizations", False),
    ]
    assert record["only_left"] == ["module_0003.jit_g"]
    assert record["only_right"] == ["module_0009.jit_h"]
    assert diff(one, other, "--stages", "before*") == ExitCode.MISMATCH
    assert f"- only in {one}: module_0003.jit_g" in diff.out
    assert "1 pair of programs: 1 the same, 0 differ" in diff.out


def test_a_module_that_cannot_be_read_costs_its_own_row(diff: Shell, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    write_module(one, 0, DOUBLE, SUM)
    write_module(other, 0, DOUBLE, BROKEN)
    record = diff.json(one, other)
    assert record["exit_code"] == ExitCode.USAGE
    assert record["programs"][1]["error"]["kind"] == "HloSyntaxError"
    assert diff(one, other) == ExitCode.USAGE
    assert "1 could not be read" in diff.out


def test_two_npz_files(diff: Shell, tmp_path: Path) -> None:
    values = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)
    wrong = values.copy()
    wrong[2, 1] += 0.5
    left, right = tmp_path / "left.npz", tmp_path / "right.npz"
    np.savez(left, out_0=values, out_1=np.arange(3), out_2=values, lost=values)
    np.savez(right, out_0=values, out_1=np.arange(3), out_2=wrong)
    record = diff.json(left, right)
    assert record["exit_code"] == ExitCode.MISMATCH
    assert record["only_left"] == ["lost"]
    comparisons = {result["name"]: result["comparison"] for result in record["results"]}
    assert [comparisons[f"out_{i}"]["verdict"] for i in range(3)] == ["identical", "identical", "wrong"]
    assert (comparisons["out_2"]["mismatched"], comparisons["out_2"]["total"]) == (1, 12)
    assert comparisons["out_2"]["worst_absolute"]["index"] == [2, 1]
    assert diff(left, right) == ExitCode.MISMATCH
    assert "1 of 12 (8.33 %)" in diff.out
    assert "3 arrays compared: 2 agree" in diff.out
    assert diff(left, right, "--atol", 1) == ExitCode.MISMATCH, "an array is on one side only"


def test_a_tolerance(diff: Shell, tmp_path: Path) -> None:
    left, right = tmp_path / "left.npy", tmp_path / "other_name.npy"
    np.save(left, np.float32([1, 2, 3]))
    np.save(right, np.float32([1, 2, 3.001]))
    assert diff(left, right) == ExitCode.MISMATCH
    assert diff(left, right, "--rtol", "1e-3") == ExitCode.AGREE


def test_folders_of_arrays(diff: Shell, tmp_path: Path) -> None:
    """What `--save-outputs` writes, for one module and several."""
    for name, value in (("one", 1.0), ("other", 1.0)):
        folder = tmp_path / name / "module_0000.jit_f" / "cpu_after_optimizations"
        folder.mkdir(parents=True)
        np.save(folder / "out.0.actual.npy", np.float32([value]))
        np.save(folder / "out.1.actual.npy", np.array([value], ml_dtypes.bfloat16))
    record = diff.json(tmp_path / "one", tmp_path / "other")
    assert record["exit_code"] == ExitCode.AGREE
    assert [result["name"] for result in record["results"]] == [
        "module_0000.jit_f/cpu_after_optimizations/out.0.actual",
        "module_0000.jit_f/cpu_after_optimizations/out.1.actual",
    ]


def test_other_dimensions_are_a_difference(diff: Shell, tmp_path: Path) -> None:
    left, right = tmp_path / "left.npy", tmp_path / "right.npy"
    np.save(left, np.zeros((2, 3), np.float32))
    np.save(right, np.zeros((3, 2), np.float32))
    record = diff.json(left, right)
    assert record["results"][0]["comparison"]["verdict"] == "structural"
    assert record["exit_code"] == ExitCode.MISMATCH


def test_bad_input(diff: Shell, files: dict[str, Path], tmp_path: Path) -> None:
    assert diff(files["sum"], tmp_path / "nothing.hlo") == ExitCode.USAGE
    assert "no such file" in diff.error
    array = tmp_path / "a.npy"
    np.save(array, np.zeros(3))
    assert diff(files["sum"], array) == ExitCode.USAGE
    assert "one side holds arrays" in diff.error
    assert diff(files["sum"], files["broken"]) == ExitCode.USAGE
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(b"PK nothing")
    assert diff(damaged, damaged) == ExitCode.USAGE
    assert str(damaged) in diff.error
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    np.savez(one, a=np.zeros(1), b=np.zeros(1))
    np.savez(other, c=np.zeros(1), d=np.zeros(1))
    assert diff(one, other) == ExitCode.USAGE
    assert "no array name in common" in diff.error
    void = tmp_path / "void.npy"
    np.save(void, np.zeros(3, "V3"))
    assert diff(void, void) == ExitCode.USAGE
    assert "does not tell its type" in diff.error
