"""Programs that are other functions of real numbers, on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.programs import DOUBLE, SUM, write_module
from support.shell import Shell

from hlotool.errors import ExitCode
from hlotool.interface.cli.main import main

#: Twice the argument and half a millionth more: two ulps, which no test of values tells from rounding.
NEARLY_DOUBLE = DOUBLE.replace("constant(2)", "constant(2.0000005)")


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell("run", "run-1.json", capsys)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    return folder


def test_another_function_within_rounding_is_a_line_and_no_failure(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, NEARLY_DOUBLE)
    assert run(dump) == ExitCode.AGREE
    assert "≠ differs  module_0000.jit_f" in run.out
    assert "not mathematically equivalent (4 of 4 elements at a random point)" in run.out
    assert "1 of 1 not mathematically equivalent" in run.out
    assert run.out.splitlines()[-1] == f"next: hlotool bisect {dump} --exact"
    assert run(dump, "--quiet") == ExitCode.AGREE
    assert "≠ differs" in run.out


def test_on_demand_it_is_a_mismatch(run: Shell, dump: Path) -> None:
    write_module(dump, 0, DOUBLE, NEARLY_DOUBLE)
    write_module(dump, 1, DOUBLE, SUM, "jit_g")
    assert run(dump, "--exact") == ExitCode.MISMATCH
    assert "✗ unequal" in run.out
    assert run.out.splitlines()[-1].startswith(f"next: hlotool bisect {dump} --exact --only ")
    found = run.json(dump, "--exact")
    assert found["summary"] == {"identical": 1, "unequal": 1}
    [other] = [
        leaf for module in found["modules"] for leaf in module["leaves"] if leaf["verdict"] == "unequal"
    ]
    assert (other["exact"]["relation"], other["exact"]["differing"]) == ("unequal", 4)


def test_the_same_function_is_established_or_nothing_is_claimed(run: Shell, dump: Path) -> None:
    """A result of the compiled program says nothing of functions, and is judged by its values."""
    write_module(dump, 0, DOUBLE, SUM)
    x = np.float32([1, 2, 3, 4])
    np.savez("in.npz", x=x)
    np.savez("out.npz", y=x + x)
    assert run(dump, "--exact", "--inputs", "in.npz", "--outputs", "out.npz") == ExitCode.AGREE


def test_what_cannot_be_compared_exactly_is_inconclusive(run: Shell, dump: Path) -> None:
    """Without any time for it."""
    write_module(dump, 0, DOUBLE, SUM)
    assert run(dump, "--exact", "--budget", 0) == ExitCode.INCONCLUSIVE
    assert "1 of 1 could not be compared exactly: field: the time limit is over" in run.out


def test_bisection_searches_for_another_function_on_demand(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_module(dump, 0, DOUBLE, NEARLY_DOUBLE)
    options = ["--try-on", "none", "--no-repro"]
    assert main(["bisect", str(dump), *options]) == ExitCode.INCONCLUSIVE
    shown = capsys.readouterr().out
    assert "module_0000.jit_f: differs, right up to before_optimizations" in shown
    assert shown.splitlines()[-1] == f"next: hlotool bisect {dump} --exact"
    assert main(["bisect", str(dump), "--exact", *options]) == ExitCode.MISMATCH
    shown = capsys.readouterr().out
    assert "failure      unequal: function of multiply" in shown
    assert "%two = f32[] constant(2.00000048)" in shown
