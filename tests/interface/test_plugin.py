"""`pytest --hlotool` on suites with one wrong program: that test alone fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.capture import stub_of_jaxlib

ROOT = Path(__file__).resolve().parents[2]

COMPILES = "from jaxlib import xla_client\n"
#: Tests by what is to become of them; the stand-in for XLA writes dumps of the corpus.
SUITE = """
import pytest
from jaxlib import xla_client

xla_client.compile("planted/model_fn_opcode")

def test_passed_healthy():
    xla_client.compile("jax/int8_dot")

def test_failed_wrong():
    xla_client.compile("jax/int8_dot", "planted/model_fn_opcode")

def test_passed_compiled_before():
    pass

def test_passed_not_judged():
    xla_client.compile("jax/host_callback")

@pytest.fixture
def compiled():
    yield xla_client.compile("planted/model_fn_opcode")

def test_failed_by_its_fixture(compiled):
    pass

@pytest.mark.hlotool(allow=["rounding", "wrong"])
def test_passed_allowed():
    xla_client.compile("planted/model_fn_opcode")

@pytest.mark.hlotool(atol=1e9)
def test_passed_within_tolerance():
    xla_client.compile("planted/model_fn_opcode")

@pytest.mark.xfail(strict=True)
def test_xfailed_known():
    xla_client.compile("planted/model_fn_opcode")

def test_failed_anyway():
    xla_client.compile("planted/model_fn_opcode")
    assert 1 == 2

@pytest.mark.hlotool(allow=["roundin"])
def test_failed_bad_marker():
    xla_client.compile("jax/int8_dot")

def test_passed_checks_itself(hlotool_check):
    assert not hlotool_check().rows
    xla_client.compile("planted/model_fn_opcode")
    with pytest.raises(pytest.fail.Exception, match="model_fn"):
        hlotool_check()
    xla_client.compile("jax/int8_dot")
    assert hlotool_check(seed=4).verdict.value == "identical"
"""


#: Runs pytest on a file; returns its exit status and what it printed.
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    stub = stub_of_jaxlib(tmp_path / "stub", ["dump_large_constants"])
    monkeypatch.setenv("HLOTOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(stub), str(ROOT), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("XLA_FLAGS", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)

    def run(text: str, *options: str) -> tuple[int, str]:
        (tmp_path / "test_it.py").write_text(text)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "hlotool.pytest_plugin",
            "-p",
            "no:cacheprovider",
            "-rA",
        ]
        ended = subprocess.run(
            [*command, "--strict-markers", *options, "test_it.py"],
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )
        return ended.returncode, ended.stdout + ended.stderr

    return run


def outcomes(printed: str) -> dict[str, str]:
    """What became of each test, by its name, as the short summary says."""
    return {
        name: how
        for how, name in re.findall(r"^(PASSED|FAILED|XFAIL|ERROR|SKIPPED) \S*::(\w+)", printed, re.M)
    }


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_tests_with_wrong_programs_fail(suite: Run, workers: tuple[str]) -> None:
    code, printed = suite(SUITE, "--hlotool", *workers)
    found = outcomes(printed)
    assert len(found) == SUITE.count("def test_"), printed
    assert {name: how.lower()[:5] for name, how in found.items()} == {
        name: name.split("_")[1][:5] for name in found
    }, printed
    assert code == 1
    assert "module_0000.jit_model_fn: wrong" in printed
    assert re.search(r"next: hlotool bisect \S+/wrong/", printed)
    assert "compiled outside of tests:" in printed
    assert re.search(r"not judged: test_it.py::test_passed_not_judged: module_\d+.*callback", printed)
    assert "'roundin' is not a valid Verdict" in printed
    assert re.search(r"\d+ programs of \d+ tests: \d+ identical · .*\d+ wrong", printed)


def test_off_by_default(suite: Run) -> None:
    text = 'import os\ndef test_it():\n    assert "XLA_FLAGS" not in os.environ\n'
    text += "def test_fixture(hlotool_check):\n    raise AssertionError\n"
    code, printed = suite(text)
    assert code == 0
    assert outcomes(printed)["test_it"] == "PASSED"
    assert "hlotool_check needs pytest --hlotool" in printed


def test_what_no_test_compiles_is_no_test_s_fault(suite: Run, tmp_path: Path) -> None:
    """The run fails, and the dump stays where the user wants it."""
    text = COMPILES + 'xla_client.compile("planted/model_fn_opcode")\ndef test_it():\n    pass\n'
    code, printed = suite(text, "--hlotool", "--hlotool-keep", str(tmp_path / "kept"))
    assert outcomes(printed) == {"test_it": "PASSED"}
    assert code == 1
    assert "compiled outside of tests:" in printed
    [folder] = (tmp_path / "kept" / "main" / "wrong").iterdir()
    assert str(folder) in printed
    assert {path.name.partition(".")[0] for path in folder.iterdir()} == {"module_0000"}


def test_what_could_not_be_judged_is_said(suite: Run) -> None:
    code, printed = suite("def test_it():\n    pass\n", "--hlotool")
    assert code == 0
    assert "no dump was written" in printed


@pytest.mark.xla
def test_a_fault_of_xla_itself(suite: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """jaxlib 0.10.2 multiplies four-bit integers without wrapping them (corpus/jax/int4_product)."""
    jax = pytest.importorskip("jax")
    if jax.__version_info__ < (0, 10):
        pytest.skip("this fault is not known of older versions")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"].split(os.pathsep, 2)[2]])
    )
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    text = """
import jax, jax.numpy as jnp, ml_dtypes, numpy as np

def test_healthy():
    jax.jit(lambda x: jnp.tanh(x) @ x)(np.ones((8, 8), np.float32)).block_until_ready()

def test_product():
    x = np.array([[-4, 5, -5, 0], [3, 7, -8, 1]]).astype(ml_dtypes.int4)
    jax.jit(lambda x, y: (x * y).astype(jnp.int8) + 1)(x, x[::-1].copy()).block_until_ready()

def test_healthy_too():
    jax.jit(lambda x: jnp.sort(x) + 1)(np.ones(8, np.float32)).block_until_ready()
"""
    code, printed = suite(text, "--hlotool")
    assert outcomes(printed) == {
        "test_healthy": "PASSED",
        "test_product": "FAILED",
        "test_healthy_too": "PASSED",
    }
    assert code == 1
    assert "multiply" in printed
