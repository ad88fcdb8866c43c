"""Wherever a name is looked up and not found, the nearest one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main
from hlotool.system.user_input import did_you_mean, nearest

PROGRAM = """HloModule jit_step
ENTRY e {
  x = f32[4] parameter(0)
  total = f32[4] add(x, x)
  ROOT out = f32[4] multiply(total, x)
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    dump = tmp_path / "d"
    dump.mkdir()
    for stage in ("before_optimizations", "cpu_after_optimizations"):
        (dump / f"module_0000.jit_step.{stage}.txt").write_text(PROGRAM)
    (tmp_path / "f.hlo").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        # Of the command line itself, which also says what shows all.
        ("rnu d", "'run'"),
        ("run --halp", "'--help'"),
        ("run d --sede 3", "'--seed'"),
        ("run d --sede=3", "'--seed'"),
        ("run d --elided genrate", "'generate'"),
        ("--verison", "'--version'"),
        # Of programs.
        ("run d --only jit_setp", "'jit_step'"),
        ("inspect d --only ^module_0000.jit_stp$", "'module_0000.jit_step'"),
        ("inspect d --stages before_optimisations", "'before_optimizations'"),
        ("diff d d --stages cpu_after_optimisations", "'cpu_after_optimizations'"),
        ("reduce d --stage before_optimisations --backend xla", "'before_optimizations'"),
        ("extract f.hlo totl", "'total'"),
        ("check f.hlo --explain-fusion totl out", "'total'"),
        ("opt f.hlo --passes extract{instruction=totl}", "'total'"),
        # Of hlotool.
        ("run d --backend nupmy", "'numpy'"),
        ("run d --compare numpy,stablehol", "'stablehlo'"),
        ("run d --backend xla:disabel=dce", "'disable'"),
        ("opt f.hlo --passes simplfy", "'simplify'"),
        ("opt f.hlo --passes fuse{kidn=loop}", "'kind'"),
        ("opt f.hlo --passes dce --pass-fuel dcee=1", "'dce'"),
        ("opt f.hlo --passes dce --print-before dcee", "'dce'"),
        ("check f.hlo --only recompliation", "'recompilation'"),
    ],
)
def test_what_was_meant(line: str, meant: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == ExitCode.USAGE
    out, error = capsys.readouterr()
    assert out == ""
    assert f"; did you mean {meant}?" in error


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("multiply(", "multipyl(", "'multiply'"),
        ("add(x, x)", "add(xx, x)", "'x'"),
        ("(total", "(totla", "'total'"),
    ],
)
def test_names_in_a_program(
    old: str, new: str, meant: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("g.hlo").write_text(PROGRAM.replace(old, new))
    assert main(["opt", "g.hlo"]) == ExitCode.USAGE
    assert f"; did you mean {meant}?" in capsys.readouterr().err


def test_an_output_that_there_is_not(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = PROGRAM.replace("ROOT out", "out").replace(
        "x)\n}", "x)\n  ROOT r = (f32[4], f32[4]) tuple(out, x)\n}"
    )
    for path in Path("d").iterdir():
        path.write_text(program)
    main(["run", "d", "--rtol", "out[7]:1e-3", "--no-further-sets"])
    assert "no program has the output out[7], which a tolerance was given for; did you mean 'out[" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "last"),
    [(["run", "--halp"], "next: hlotool run --help"), (["rnu"], "next: hlotool --help")],
)
def test_wrong_usage_points_to_the_help(
    arguments: list[str], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the command that it is about; that line works."""
    assert main(arguments) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines()[-1] == last
    assert main(last.split()[2:]) == ExitCode.AGREE


@pytest.mark.parametrize("command", ["run d", "exec"])
def test_options_are_not_shortened(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--precisio", "hlo", "--", "true"]) == ExitCode.USAGE
    assert "unrecognized arguments: --precisio" in capsys.readouterr().err


def test_nothing_is_meant_where_nothing_is_alike() -> None:
    assert did_you_mean("zzz", ["budget", "seed"]) == ""
    assert did_you_mean("", ["budget"]) == ""
    assert nearest("x" * 1000, ["x" * 1000]) == ""
    assert nearest("BUDGET", ["budget"]) == "budget"
    # Many names cost no more than some.
    assert nearest("budget", (f"n{number}" for number in range(10**9))) == ""
