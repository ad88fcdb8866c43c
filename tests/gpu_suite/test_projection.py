"""What a dry run foresees of a first call on a GPU: the host's share at full size, with nothing left out."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import projection
from benchmarks.gpu.cases import all_cases
from benchmarks.gpu.projection import projected
from benchmarks.gpu.table import markdown

ROOT = Path(__file__).resolve().parents[2]

_BUDGETS = {"smoke": 45.0, "speed": 100.0, "xla": 85.0, "accuracy": 40.0, "tests": 90.0, "fuzz": 20.0}


def _spent(**kinds: float) -> dict[str, dict[str, float]]:
    return {kind.replace("_", " "): {"wall": 2 * cpu, "cpu": cpu} for kind, cpu in kinds.items()}


def _parts() -> dict[str, dict[str, object]]:
    full = {"full_arguments": 8.0, "full_compile": 16.0, "full_bits": 2.0, "full_distance": 12.0}
    speed = _spent(arguments=0.5, compile=99.0, compare=0.25, device=30.0, full_reference=20.0, **full)
    return {
        "smoke": {"state": "passed", "cpu": 3.0},
        "speed": {"state": "passed", "cpu": 190.0, "spent": speed},
        "xla": {
            "state": "passed", "cpu": 12.0, "done": ["a", "b"],
            "spent": _spent(arguments=0.5, compile=1.0, XLA=4.0, compare=0.5, device=3.0),
        },
        "accuracy": {
            "state": "passed", "cpu": 10.0,
            "spent": _spent(arguments=0.5, compile=1.0, reference=0.5, compare=0.5, device=5.5),
        },
        "tests": {"state": "passed", "cpu": 80.0},
        "fuzz": {"state": "passed", "cpu": 5.0},
    }  # fmt: skip


def test_what_is_foreseen() -> None:
    rows = {row.name: row for row in projected(_parts(), _BUDGETS)}
    assert rows["smoke"].seconds == 3
    # The compiler and the sizes of a GPU instead of those of the dry run; the stand-in for the device does
    # not count.
    assert rows["speed"].kinds == {
        "arguments": 8, "compile": 16, "reference": 0, "XLA": 0, "compare": 2,
        "rest": pytest.approx(190 - 0.5 - 99 - 0.25 - 30 - 20 - 8 - 16 - 2 - 12),
    }  # fmt: skip
    assert rows["speed"].seconds == pytest.approx(8 + 16 + 2 + 2.25)
    # 5 s to start and 1 s for each of two programs instead of the 4 s that XLA took.
    assert rows["xla"].seconds == pytest.approx(8 + 1 + 12 + 3 + 7)
    # Four processes.
    assert rows["accuracy"].seconds == pytest.approx((8 + 1 + 20 + 12 + 2) / 4)
    assert rows["tests"].seconds == 20
    assert rows["fuzz"].seconds == 20  # whatever it gets


def test_the_table_says_whether_it_fits() -> None:
    results = {
        "title": "t", "options": {"project": "nvcc"}, "machine": {}, "about": {}, "cases": {},
        "parts": _parts(), "budgets": _BUDGETS,
    }  # fmt: skip
    text = markdown(results)
    assert "| accuracy | 8.0 | 1.0 | 20.0 | 0.0 | 12.0 | 2.0 | 43.0 | 10.8 | 40.0 |" in text
    assert "The first call on a GPU is expected to take 113 s of 380 s: fits." in text
    tight = markdown({**results, "budgets": dict.fromkeys(_BUDGETS, 15.0)})
    assert "of 90 s: DOES NOT FIT." in tight
    assert "without sanitizers." in markdown({**results, "budgets": {**_BUDGETS, "sanitizers": 40}})


#: Says what nvcc says, and makes nothing of use.
_NVCC = """#!/bin/bash
case " $* " in *" --list-gpu-code "*) echo sm_90; exit;; *" --version "*) echo "release 13.0"; exit;; esac
while [ $# -gt 1 ]; do case "$1" in -o) made=$2; shift;; esac; shift; done
echo cubin > "$made"
"""


def test_the_work_for_a_large_gpu_is_done(tmp_path: Path) -> None:
    compiler = tmp_path / "nvcc"
    compiler.write_text(_NVCC, encoding="utf-8")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    script = (
        "import sys; from benchmarks.gpu import projection; from benchmarks.gpu.lines import Reporter; "
        "from benchmarks.gpu.cases import all_cases; projection.FULL = 4_000_000; "
        "case = next(c for c in all_cases(1) if c.name == 'bias_bf16'); "
        "projection.full_size(case, sys.argv[1], Reporter())"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", script, str(compiler)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, encoding="utf-8", timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    spent = {line["spent"]: line["wall"] for line in map(json.loads, done.stdout.splitlines())}
    kinds = {kind for part in projection._IN_FULL.values() for kind in part.values()}
    assert set(spent) == kinds
    assert all(seconds > 0 for seconds in spent.values())
    assert "bias_bf16" in {case.name for case in all_cases(1)}
