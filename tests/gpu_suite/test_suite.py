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
from benchmarks.gpu.projection import projected
from benchmarks.gpu.results import Results
from benchmarks.gpu.suite import FIRST_CALL, PARTS, Kind, run_parts
from benchmarks.gpu.work import Settings, Work
from hlotool.backends.cuda.toolchain import find_nvcc

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
    parts = ["smoke", "speed", "xla", "accuracy", "fuzz"]
    done, results = _run(tmp_path, *[word for part in parts for word in ("--part", part)], *_cases(*names))
    assert done.returncode == 0, done.stderr
    assert list(results["parts"]) == parts
    states = {name: part["state"] for name, part in results["parts"].items()}
    assert states.pop("xla") in ("passed", "skipped")
    assert set(states.values()) == {"passed"}
    fuzzed = results["parts"]["fuzz"]
    assert fuzzed["fusions"] == 12
    assert fuzzed["differing"] == {}
    assert list(results["cases"]) == names
    for name, found in results["cases"].items():
        assert 0 < found["least"] <= found["median"] <= found["most"], name
        assert found["repeats_bits"] is True
        assert found["misfits"] == 0
        assert found["launches"] == (0 if name == "sort_f32" else 1)
        assert found["compile_cold"] > 0
        assert found["compile_cached"] > 0
        if states.get("xla") == "passed":
            assert "speedup" in found["xla"] or "missing" in found["xla"]
    assert results["about"]["is_hardware"] is False
    table = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    assert table in done.stdout
    assert all(f"| {name} |" in table for name in names)
    assert "| context | passed |" in table
    assert "| speed | passed |" in table
    spent = {name: set(part["spent"]) for name, part in results["parts"].items() if part.get("spent")}
    assert spent["speed"] == {"arguments", "compile", "compare", "device"}
    assert spent["accuracy"] == {"arguments", "compile", "compare", "device", "reference"}
    assert all(results["parts"][name]["cpu"] > 0 for name in spent)


@needs_compiler
@pytest.mark.skipif(bool(fake_driver.missing()), reason=fake_driver.missing())
def test_the_stand_in_is_measured_as_a_gpu_is(tmp_path: Path) -> None:
    parts = ["--part", "smoke", "--part", "speed", "--xla", "none"]
    done, results = _run(tmp_path, *parts, *_cases("column_sum_f32"))
    assert done.returncode == 0, done.stderr
    about, rows = results["about"], results["parts"]["smoke"]["rows"]
    assert about["device"].startswith("stand-in, cuda:compiler=nvcc (sm_90")
    assert about["cache"] == 1 << 16
    copied = about["basics"]["copy on the device"]
    assert about["size"] == max(4 << 16, round(100e-6 * copied["moved"] / copied["seconds"]))
    assert list(about["basics"]) == [
        "copy on the device",
        "copy on the device, of what a case moves",
        "one launch, on the host",
        "one program of one launch, on the host",
        "pageable memory to the device",
        "device to pageable memory",
        "page-locked memory to the device",
        "device to page-locked memory",
    ]
    assert {name: row["state"] for name, row in rows.items()} == {
        "context": "passed",
        "nvrtc": "skipped",
        "nvcc": "passed",
        "g++": "skipped",
        "copy": "passed",
        "cublas": "passed",
        "transfers": "passed",
        "xla": "skipped",
    }
    found = results["cases"]["column_sum_f32"]
    assert (found["registers"], found["spilled"]) == (24, 0)
    assert "xla" not in found


def test_without_a_gpu_nothing_but_the_smoke_is_tried(tmp_path: Path) -> None:
    """Not a dry run on this machine: nothing can be measured, and the results say so."""
    command = [sys.executable, "-m", "benchmarks.gpu.suite", "--out", str(tmp_path)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    hidden = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path}
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **hidden}, capture_output=True, encoding="utf-8", timeout=120
    )
    smoke, *others = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))["parts"].values()
    assert done.returncode == 1
    assert smoke["state"] == "failed"
    reason = smoke["rows"]["context"]["said"]
    assert reason.startswith("backend cuda")
    assert "\n" not in reason
    assert [row["state"] for row in smoke["rows"].values()] == ["failed"] + ["skipped"] * 7
    assert len(others) == len(PARTS) - 1
    for part in others:
        assert part["state"] == "not run"
        assert part["reason"].startswith(f"smoke failed: context: {reason}")
    assert f"| context | failed | {reason} |" in (tmp_path / "gpu.md").read_text(encoding="utf-8")


@needs_compiler
@pytest.mark.skipif(bool(fake_driver.missing()), reason=fake_driver.missing())
def test_a_driver_that_has_no_device_is_one_row(tmp_path: Path) -> None:
    done, results = _run(tmp_path, "--part", "smoke", FAKE_CUDA_DEVICES="0")
    assert done.returncode == 1
    row = results["parts"]["smoke"]["rows"]["context"]
    assert row["state"] == "failed"
    assert row["said"].startswith("backend cuda finds no CUDA device")


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


@needs_compiler
def test_a_second_call_goes_on(tmp_path: Path) -> None:
    """With what failed or passed as it stands, in another folder, and the smoke again."""
    first, second = tmp_path / "first", tmp_path / "second"
    options = ["--backend", "cuda-emu", "--xla", "none", *_cases("row_sum_f32", "bias_f32")]
    parts = ["--part", "smoke", "--part", "speed", "--part", "accuracy"]
    done, results = _run(first, *options, *parts[:4])
    assert done.returncode == 0, done.stderr
    speed = results["parts"]["speed"]
    speed.update(state="unfinished", reason="no time left for bias_f32", done=["row_sum_f32"])
    del results["cases"]["bias_f32"]
    results["cases"]["row_sum_f32"]["median"] = 42.0  # by which it is known again
    (first / "gpu.json").write_text(json.dumps(results), encoding="utf-8")
    done, results = _run(second, *options, *parts, "--resume", str(first))
    assert done.returncode == 0, done.stderr
    assert {name: part["state"] for name, part in results["parts"].items()} == dict.fromkeys(
        ("smoke", "speed", "accuracy"), "passed"
    )
    assert results["parts"]["speed"]["done"] == ["row_sum_f32", "bias_f32"]
    assert results["cases"]["row_sum_f32"]["median"] == 42
    assert results["cases"]["bias_f32"]["median"] < 42
    assert {"relative", "median"} <= results["cases"]["row_sum_f32"].keys()
    done, results = _run(second, *options, *parts[2:], "--resume")
    assert done.returncode == 0
    assert "is done" not in done.stderr  # there was nothing left


def test_results_of_another_gpu_are_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "gpu.json").write_text('{"machine": {"GPU": "another one"}}', encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "benchmarks.gpu.suite",
        "--limit",
        "0",
        "--resume",
        "--out",
        str(tmp_path),
    ]
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, encoding="utf-8", timeout=60
    )
    assert done.returncode == 1
    assert "is of another machine, another one" in done.stderr


def _passes(work: Work) -> None:
    work.part.update(state="passed", reason="nothing to do")


def _parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float = 60, **parts: Kind
) -> dict[str, dict[str, Any]]:
    """What is in the JSON when all of these were run."""
    monkeypatch.setattr(suite, "PARTS", parts)
    settings = Settings("cuda")
    results = Results(tmp_path, "title", settings, {})
    run_parts(list(parts), settings, results, limit)
    left: dict[str, dict[str, Any]] = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))["parts"]
    return left


def test_a_fault_in_one_part_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(work: Work) -> None:
        raise RuntimeError("this part is broken")

    left = _parts(tmp_path, monkeypatch, one=Kind(faulty, 9), two=Kind(_passes, 9))
    assert (left["one"]["state"], left["two"]["state"]) == ("failed", "passed")
    assert "this part is broken" in left["one"]["reason"]


def test_each_part_gets_its_share_and_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin, given = time.monotonic(), []

    def noting(work: Work) -> None:
        given.append(work.until - begin)
        _passes(work)

    kinds = {"one": Kind(noting, 10), "two": Kind(noting, 25), "three": Kind(noting, 5, is_endless=True)}
    _parts(tmp_path, monkeypatch, limit=100, **kinds, four=Kind(noting, 10))
    assert given == [pytest.approx(until, abs=5) for until in (20, 70, 10, 100)]


def test_the_first_call_leaves_time_for_a_second() -> None:
    assert sum(kind.seconds for kind in PARTS.values()) <= 420


@needs_compiler
@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_terminated_it_ends_what_it_started(tmp_path: Path) -> None:
    """What was found until then is on disk, and no process goes on."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    size = f"10{os.getpid()}"  # by which its processes are known
    command = [sys.executable, "-m", "benchmarks.gpu.suite", "--backend", "cuda-emu", "--size", size]
    command += ["--xla", "none", "--part", "speed", "--out", str(tmp_path)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while "median" not in (text := _text(tmp_path / "gpu.json")) and time.monotonic() < end:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(timeout=30) == 143
    assert json.loads(text)["cases"]
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, encoding="utf-8").stdout
    assert not [line for line in listed.splitlines() if "gpu.measure" in line and size in line]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.mark.slow
@needs_compiler
def test_full_dry_run(tmp_path: Path) -> None:
    done, results = _run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(results["cases"]) == [case.name for case in all_cases(1)]
    assert not [name for name, found in results["cases"].items() if "failed" in found]
    if find_nvcc() is not None:
        rows = list(projected(results["parts"], results["budgets"]))
        assert [row.name for row in rows] == list(PARTS)
        assert sum(row.seconds for row in rows) <= FIRST_CALL
        assert [row.name for row in rows if row.seconds > row.budget] == []


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
