"""`hlotool inspect`: what is printed, exit codes, choices, files that cannot be read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.programs import BROKEN, DOUBLE, PAIR, SUM, write_module
from support.shell import Shell

from hlotool.errors import ExitCode


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("inspect", "inspect-1.json", capsys)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    write_module(folder, 0, DOUBLE, SUM)
    write_module(folder, 1, PAIR, PAIR, "jit_g")
    return folder


def test_a_module_in_detail(inspect: Shell, corpus: Path) -> None:
    assert inspect(corpus / "jax" / "model_fn") == ExitCode.AGREE
    assert "module_0000.jit_model_fn  jax function model_fn" in inspect.out
    assert "stages  22, 20 of them between passes" in inspect.out
    assert (
        "fusion %add_reduce_fusion  corpus/generate/jax_programs.py:25    383         1.5 KiB" in inspect.out
    )
    assert "KERNEL" not in inspect.out
    assert inspect.error == ""


def test_a_directory_is_one_line_per_function(inspect: Shell, dump: Path) -> None:
    write_module(dump, 2, DOUBLE, SUM)
    assert inspect(dump) == ExitCode.AGREE
    lines = inspect.out.splitlines()
    assert lines[1].split()[:2] == ["g", "1×"]
    assert lines[2].split()[:4] == ["f", "2×", "(1", "program)"]
    assert lines[-1].startswith("2 functions, 3 modules, 6 stages")
    assert f"1 function compiled more than once: hlotool check {dump} says why" in inspect.out
    assert "opcode" not in inspect.out


def test_verbose_shows_every_module(inspect: Shell, dump: Path) -> None:
    assert inspect(dump, "--verbose") == ExitCode.AGREE
    assert inspect.out.count("before_optimizations  cpu_after_optimizations") == 2 * 2
    assert "module_0001.jit_g  jax function g" in inspect.out


def test_quiet_leaves_out_the_details(inspect: Shell, dump: Path) -> None:
    assert inspect(dump, "--only", "jit_f", "-q") == ExitCode.AGREE
    assert inspect.out.startswith("1 function, 1 module, 2 stages")


def test_the_record_follows_its_schema(inspect: Shell, dump: Path) -> None:
    record = inspect.json(dump, "--only", "jit_f")
    [module] = record["modules"]
    assert [stage["label"] for stage in module["stages"]] == [
        "before_optimizations",
        "cpu_after_optimizations",
    ]
    assert module["stages"][1]["opcodes"] == {"parameter": 1, "add": 1}
    assert module["kernels"] is None
    [function] = record["functions"]
    assert (function["function"], function["modules"]) == ("f", [0])


def test_chosen_stages(inspect: Shell, dump: Path) -> None:
    record = inspect.json(dump, "--stages", "*after*")
    assert [len(module["stages"]) for module in record["modules"]] == [1, 1]
    assert inspect(dump, "--stages", "nothing") == ExitCode.USAGE
    assert "no stage matches --stages 'nothing'" in inspect.error


def test_a_broken_file_is_one_row(inspect: Shell, dump: Path) -> None:
    write_module(dump, 2, BROKEN, BROKEN, "jit_h")
    assert inspect(dump) == ExitCode.USAGE
    rows = [line for line in inspect.out.splitlines() if line.startswith("! ")]
    assert len(rows) == 2
    assert "jit_h.before_optimizations.txt:5:1:" in rows[0]
    assert inspect.out.splitlines()[-1].startswith(
        "3 functions, 3 modules, 6 stages, 2 files could not be read"
    )
    record = inspect.json(dump)
    assert [len(module["failures"]) for module in record["modules"]] == [0, 0, 2]


def test_a_path_without_hlo_among_others(inspect: Shell, dump: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert inspect(tmp_path / "empty", dump) == ExitCode.USAGE
    assert inspect.out.splitlines()[-2].startswith(f"! {tmp_path}/empty: empty;")
    assert inspect(tmp_path / "empty") == ExitCode.USAGE
    assert inspect.out == ""
    assert inspect.error.startswith(f"hlotool: error: {tmp_path}/empty: empty;")


def test_archives_and_files(inspect: Shell, dump: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "packed"), "gztar", dump)
    assert inspect(archive) == ExitCode.AGREE
    assert "2 functions, 2 modules, 4 stages" in inspect.out
    file = next(dump.glob("*jit_g.before*"))
    assert inspect(file) == ExitCode.AGREE
    assert "out[1]  f32[4]{0}" in inspect.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "nothing"], "no module matches --only 'nothing'; there are: module_0000.jit_f"),
        (["--kernels", "--arch", "hopper"], "'hopper' is no architecture; write it like sm_90"),
        (["--only", "("], "'(' is no regular expression"),
    ],
)
def test_wrong_usage_is_one_line(inspect: Shell, dump: Path, arguments: list[str], message: str) -> None:
    assert inspect(dump, *arguments) == ExitCode.USAGE
    assert message in inspect.error


def test_kernels(inspect: Shell, dump: Path) -> None:
    record = inspect.json(dump, "--kernels", "--only", "jit_f")
    [module] = record["modules"]
    kernels = module["kernels"]
    assert kernels["label"] == "cpu_after_optimizations"
    [launch] = kernels["launches"]
    assert launch["source"]["instruction"] == "y"
    assert (launch["source"]["file"], launch["source"]["file_line"]) == ("model.py", 7)
    [kernel] = kernels["kernels"]
    assert launch["kernels"] == [kernel["name"]]
    assert "// %y = add" in kernel["source"]
    # Compiled once, and found again.
    assert inspect(dump, "--kernels", "--only", "jit_f") == ExitCode.AGREE
    assert "1 launch of 1 kernel" in inspect.out
    assert f"  KERNEL({kernel['name']}" in inspect.out
    assert inspect(dump, "--kernels", "--only", "jit_f", "--quiet") == ExitCode.AGREE
    assert "1 launch of 1 kernel" in inspect.out
    assert "KERNEL(k" not in inspect.out
