"""`hlotool run --compare`: several backends against the first; `--backend` and its older name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.programs import BROKEN, DOUBLE, PAIR, SQUARE, SUM, write_module
from support.shell import Shell

from hlotool.backends.registry import split_specs
from hlotool.errors import BackendUnavailable, ExitCode, UsageError
from hlotool.interface.api.calls import chosen_backends
from hlotool.interface.cli.main import build_parser, main
from hlotool.runs.fleet.contents import command_key
from hlotool.runs.fleet.identity import identity_of
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.task import Task, for_each_backend
from hlotool.sources.directory import open_dump

NARROW = """HloModule narrow
ENTRY main {
  x = bf16[4096] parameter(0)
  y = bf16[4096] parameter(1)
  s = bf16[4096] add(x, y)
  p = bf16[4096] multiply(s, s)
  ROOT q = bf16[4096] subtract(p, y)
}
"""
VARIANTS = "numpy,numpy:wide,numpy:flush"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    write_module(folder, 0, DOUBLE, SUM)
    write_module(folder, 1, PAIR, PAIR, "jit_g")
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("run", "run-1.json", capsys)


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("numpy,cuda,xla:gpu", ["numpy", "cuda", "xla:gpu"]),
        ("numpy,xla:disable=a,opt=0,cuda-emu", ["numpy", "xla:disable=a,opt=0", "cuda-emu"]),
        ("xla:gpu,xla:cpu,route=pre", ["xla:gpu", "xla:cpu,route=pre"]),
        ("numpy", ["numpy"]),
    ],
)
def test_options_belong_to_the_backend_before_them(text: str, specs: list[str]) -> None:
    assert split_specs(text) == specs


@pytest.mark.parametrize("text", ["numpi,xla", "numpy,numpi", "xla:gpu,numpy,numpi"])
def test_what_is_neither_a_backend_nor_an_option(text: str) -> None:
    with pytest.raises(UsageError, match="no backend 'numpi'; there are: aot"):
        split_specs(text)


def test_one_row_for_each_module_and_backend(run: Shell, dump: Path) -> None:
    record = run.json(dump, "--compare", VARIANTS)
    assert record["exit_code"] == ExitCode.AGREE
    assert record["options"]["compare"] == ["numpy", "numpy:wide", "numpy:flush"]
    rows = [(row["name"], row["tested"].partition(" ")[0]) for row in record["modules"]]
    assert rows == [
        ("module_0000.jit_f", "numpy:wide"),
        ("module_0000.jit_f", "numpy:flush"),
        ("module_0001.jit_g", "numpy:wide"),
        ("module_0001.jit_g", "numpy:flush"),
    ]
    assert {row["reference"].partition(" ")[0] for row in record["modules"]} == {"numpy"}


def test_the_worst_row_decides(run: Shell, dump: Path) -> None:
    write_module(dump, 2, DOUBLE, SQUARE, "jit_h")
    assert run(dump, "--compare", VARIANTS) == ExitCode.MISMATCH
    assert run.out.count("✗ wrong  module_0002.jit_h") >= 2
    following = run.out.splitlines()[-1]
    assert f"--compare {VARIANTS}" in following
    assert r"--only '^module_0002\.jit_h$'" in following
    assert "hlotool run" in following


def test_a_file_that_cannot_be_read_says_for_whom(run: Shell, dump: Path) -> None:
    write_module(dump, 2, BROKEN, BROKEN, "jit_h")
    record = run.json(dump, "--compare", VARIANTS)
    assert record["exit_code"] == ExitCode.USAGE
    broken = [row for row in record["modules"] if row["verdict"] == "bad input"]
    assert [row["tested"] for row in broken] == ["numpy:wide", "numpy:flush"]
    assert run(dump, "--compare", VARIANTS, "--only", "jit_h", "--verbose") == ExitCode.USAGE
    assert "  on    numpy:wide" in run.out


def test_a_backend_that_is_not_here_is_a_row(run: Shell, dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(options: object = None) -> None:
        raise BackendUnavailable("backend cuda needs a driver")

    monkeypatch.setattr("hlotool.backends.cuda.create", missing)
    record = run.json(dump, "--compare", "numpy,cuda,numpy:wide")
    assert record["exit_code"] == ExitCode.AGREE
    *others, row = record["modules"]
    assert len(others) == 2
    assert (row["name"], row["tested"], row["verdict"]) == ("all modules", "cuda", "unsupported")
    assert row["reason"] == "backend cuda needs a driver"
    assert run(dump, "--compare", "numpy,cuda,numpy:wide") == ExitCode.AGREE
    assert "in all modules (on cuda)" in run.out
    assert run.json(dump, "--compare", "numpy,cuda")["exit_code"] == ExitCode.NOTHING_COMPARED
    assert run.json(dump, "--compare", "cuda,numpy")["error"]["message"] == "backend cuda needs a driver"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "numpy"], "--compare numpy: there is nothing to compare it with"),
        (["--compare", "numpi,numpy"], "no backend 'numpi'"),
        (["--compare", "numpy,xla", "--backend", "xla"], "give it without --reference and --backend"),
        (["--compare", "numpy,xla", "--reference", "xla"], "give it without --reference and --backend"),
        (["--precision", "wide"], "--precision is for cuda and cuda-emu, and neither is compared"),
    ],
)
def test_wrong_usage_is_one_line(run: Shell, dump: Path, arguments: list[str], message: str) -> None:
    assert run(dump, *arguments) == ExitCode.USAGE
    assert message in run.error


def test_saved_outputs_of_backends_lie_apart(run: Shell, dump: Path, tmp_path: Path) -> None:
    record = run.json(dump, "--compare", VARIANTS, "--only", "jit_f", "--save-outputs", tmp_path / "out")
    files = [leaf["actual_file"] for row in record["modules"] for leaf in row["leaves"]]
    assert len(set(files)) == 2
    assert all(Path(file).is_file() for file in files)


def test_the_journal_tells_backends_apart(dump: Path) -> None:
    options = RunOptions(
        reference="numpy", backend="numpy:wide", compare=("numpy", "numpy:wide", "numpy:flush")
    )
    tasks = for_each_backend([Task(module, options) for module in open_dump(dump).modules])
    assert [task.options.backend for task in tasks] == ["numpy:wide", "numpy:flush"] * 2
    assert len({identity_of(task).exact for task in tasks}) == 4
    assert command_key([str(dump)], options) != command_key([str(dump)], RunOptions(backend="numpy:wide"))


def test_several_processes(run: Shell, dump: Path) -> None:
    one, two = (run.json(dump, "--compare", VARIANTS, "--jobs", jobs)["modules"] for jobs in (1, 2))
    assert [row["tested"] for row in one] == [row["tested"] for row in two]


def test_backend_is_the_word_for_test(capsys: pytest.CaptureFixture[str], dump: Path) -> None:
    tested = []
    for word in ("--backend", "--test"):
        main(["run", str(dump), word, "numpy:wide", "--json"])
        tested.append([row["tested"] for row in json.loads(capsys.readouterr().out)["modules"]])
    assert tested[0] == tested[1]
    assert all(name.startswith("numpy:wide ") for name in tested[0])
    assert main(["run", "--help"]) == 0
    assert capsys.readouterr().out.count("--test BACKEND") == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--backend", "cuda-emu"], ("numpy", "cuda-emu:precision=wide")),
        (["--backend", "cuda:device=1"], ("numpy", "cuda:device=1,precision=wide")),
        (
            ["--compare", "numpy,xla:opt=0,route=pre,cuda-emu:precision=hlo"],
            ("numpy", "xla:opt=0,route=pre", "cuda-emu:precision=wide"),
        ),
    ],
)
def test_precision_is_an_option_of_generated_kernels(words: list[str], names: tuple[str, ...]) -> None:
    arguments = build_parser().parse_args(["run", "dump", *words, "--precision", "wide"])
    chosen = chosen_backends(arguments.reference, arguments.backend, arguments.compare, arguments.precision)
    assert (chosen["compare"] or (chosen["reference"], chosen["backend"])) == names


def test_narrow_floats_are_rounded_less_often_where_asked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    file = tmp_path / "narrow.hlo"
    file.write_text(NARROW, encoding="utf-8")
    found = {}
    for precision in ("hlo", "wide"):
        main(["run", str(file), "--backend", "cuda-emu", "--precision", precision, "--json"])
        [found[precision]] = json.loads(capsys.readouterr().out)["modules"]
    assert found["hlo"]["verdict"] == "identical"
    assert found["wide"]["verdict"] != "identical"
    assert "precision=wide" in found["wide"]["tested"]
