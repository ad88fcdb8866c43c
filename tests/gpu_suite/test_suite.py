"""The suite from its command on: on the stand-in for a GPU, on the emulation, with parts that fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import fake_driver
from support.kernels import needs_compiler

from benchmarks.gpu import suite
from benchmarks.gpu.cases import all_cases
from benchmarks.gpu.parts import Settings, Work
from benchmarks.gpu.suite import PARTS, Kind, Results, run_parts

ROOT = Path(__file__).resolve().parents[2]

#: What `compute-sanitizer` does as far as the suite sees, but for looking at anything.
_SANITIZER = """#!/bin/bash
while [ "${1#-}" != "$1" ]; do [ "$1" = --tool ] && tool=$2; shift 2; done
"$@" || exit
if [ "$tool" = memcheck ]; then echo "========= ERROR SUMMARY: 0 errors"
else echo "========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)"; exit 86; fi
"""


def _run(
    out: Path, *options: str, **environment: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """The command, what it left in its JSON."""
    command = ["bash", str(ROOT / "scripts" / "gpu-suite"), "--dry-run", "--out", str(out), *options]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHON": sys.executable, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    results: dict[str, Any] = json.loads((out / "gpu.json").read_text(encoding="utf-8"))
    return done, results


def _cases(*names: str) -> list[str]:
    return [part for name in names for part in ("--case", name)]


@needs_compiler
def test_dry_run(tmp_path: Path) -> None:
    names = ["axpy_chain_f32", "row_sum_bf16", "sort_f32"]
    done, results = _run(tmp_path, "--part", "measure", "--part", "fuzz", *_cases(*names))
    assert done.returncode == 0, done.stderr
    measured, fuzzed = results["parts"]["measure"], results["parts"]["fuzz"]
    assert (measured["state"], fuzzed["state"]) == ("passed", "passed")
    assert fuzzed["fusions"] == 12
    assert fuzzed["differing"] == {}
    assert list(measured["cases"]) == names
    for name, found in measured["cases"].items():
        assert 0 < found["least"] <= found["median"] <= found["most"], name
        assert found["repeats_bits"] is True
        assert found["misfits"] == 0
        assert found["launches"] == (0 if name == "sort_f32" else 1)
        assert found["compile_cold"] > 0
        assert found["compile_cached"] > 0
        assert "speedup" in found["xla"] or "missing" in found["xla"]
    assert measured["about"]["is_hardware"] is False
    table = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    assert table in done.stdout
    assert all(f"| {name} |" in table for name in names)
    assert "| measure | passed |" in table


@needs_compiler
@pytest.mark.skipif(bool(fake_driver.missing()), reason=fake_driver.missing())
def test_the_stand_in_is_measured_as_a_gpu_is(tmp_path: Path) -> None:
    done, results = _run(tmp_path, "--part", "measure", "--xla", "none", *_cases("column_sum_f32"))
    assert done.returncode == 0, done.stderr
    about = results["parts"]["measure"]["about"]
    assert about["device"].startswith("stand-in, cuda:compiler=nvcc (sm_90")
    assert "basics_failed" not in about
    assert list(about["basics"]) == [
        "copy on the device",
        "pageable memory to the device",
        "device to pageable memory",
        "one launch, on the host",
        "one program of one launch, on the host",
        "page-locked memory to the device",
        "device to page-locked memory",
    ]
    found = results["parts"]["measure"]["cases"]["column_sum_f32"]
    assert (found["registers"], found["spilled"]) == (24, 0)
    assert "xla" not in found


def test_without_a_gpu_each_part_says_why(tmp_path: Path) -> None:
    """Not a dry run on this machine: nothing can be measured, and the results say so."""
    command = [sys.executable, "-m", "benchmarks.gpu.suite", "--out", str(tmp_path)]
    command += ["--part", "measure", "--part", "fuzz"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    hidden = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path}
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **hidden}, capture_output=True, encoding="utf-8", timeout=120
    )
    measured, fuzzed = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))["parts"].values()
    assert done.returncode == 1
    assert fuzzed["state"] == "unfinished"
    assert fuzzed["reason"].startswith("ended with status 1: backend cuda")
    assert measured["state"] == "unfinished"
    assert measured["reason"].startswith("ended with status 1: backend cuda")
    assert measured["cases"] == {}
    assert len(done.stderr.splitlines()) == 2


@needs_compiler
@pytest.mark.skipif(bool(fake_driver.missing()), reason=fake_driver.missing())
def test_sanitizers(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "compute-sanitizer").write_text(_SANITIZER, encoding="utf-8")
    (tools / "compute-sanitizer").chmod(0o755)
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    done, results = _run(tmp_path / "out", "--part", "sanitizers", *_cases("row_sum_f32"), PATH=path)
    part = results["parts"]["sanitizers"]
    assert done.returncode == 1
    assert part["state"] == "failed"
    assert part["memcheck on cases"]["status"] == 0
    assert part["memcheck on cases"]["summary"] == "ERROR SUMMARY: 0 errors"
    assert part["racecheck on cases"]["status"] == 86
    assert part["racecheck on cases"]["summary"].startswith("RACECHECK SUMMARY: 3 hazards")
    assert part["reason"] == "see racecheck on cases"


def test_no_time(tmp_path: Path) -> None:
    done, results = _run(tmp_path, "--limit", "0", "--backend", "cuda-emu")
    assert done.returncode == 1
    assert {name: part["reason"] for name, part in results["parts"].items()} == dict.fromkeys(
        PARTS, "no time left"
    )


def test_a_fault_in_one_part_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(work: Work) -> None:
        raise RuntimeError("this part is broken")

    def good(work: Work) -> None:
        work.part.update(state="passed", reason="nothing to do")

    monkeypatch.setattr(suite, "PARTS", {"one": Kind(faulty, 9), "two": Kind(good, 9)})
    results = Results(tmp_path, "title", Settings("cuda", 1, 1, None))
    assert not run_parts(["one", "two"], results=results, settings=Settings("cuda", 1, 1, None), limit=60)
    left = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))["parts"]
    assert (left["one"]["state"], left["two"]["state"]) == ("failed", "passed")
    assert "this part is broken" in left["one"]["reason"]


@needs_compiler
@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_terminated_it_ends_what_it_started(tmp_path: Path) -> None:
    """What was found until then is on disk, and no process goes on."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    scale = f"0.001{os.getpid()}"  # by which its processes are known
    command = [sys.executable, "-m", "benchmarks.gpu.suite", "--backend", "cuda-emu", "--scale", scale]
    command += ["--xla", "none", "--part", "measure", "--out", str(tmp_path)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while "median" not in (text := _text(tmp_path / "gpu.json")) and time.monotonic() < end:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(timeout=30) == 143
    assert json.loads(text)["parts"]["measure"]["cases"]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, encoding="utf-8").stdout
    assert not [line for line in listed.splitlines() if "gpu.measure" in line and scale in line]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.mark.slow
@needs_compiler
def test_full_dry_run(tmp_path: Path) -> None:
    done, results = _run(tmp_path)
    assert done.returncode == 0, done.stderr
    measured = results["parts"]["measure"]
    assert list(measured["cases"]) == [case.name for case in all_cases(1)]
    assert not [name for name, found in measured["cases"].items() if "failed" in found]


def test_carried_wheels_are_installed(tmp_path: Path) -> None:
    """From a folder .whl beside the scripts, without an index; a wheel that does not fit is no obstacle."""
    checkout = tmp_path / "checkout"
    for folder in ("scripts", "benchmarks", "hlotool", "backends", "grammar", "corpus/jax/train_mnist_mlp"):
        shutil.copytree(ROOT / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests" / "support", checkout / "tests" / "support")
    wheels = checkout / ".whl"
    wheels.mkdir()
    (wheels / "unfit-1.0-cp27-cp27m-win32.whl").write_bytes(b"")
    command = [
        "bash",
        str(checkout / "scripts" / "gpu-suite"),
        "--limit",
        "0",
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert "do not fit Python" in done.stderr
    assert (tmp_path / "out" / "gpu.json").exists()
