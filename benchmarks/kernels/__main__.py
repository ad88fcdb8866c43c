"""Generated kernels on the CPU beside the numpy backend and XLA on the same programs, one after the other.

    python -m benchmarks.kernels [--scale 0.02] [--only softmax] [--isa avx2]

Times are the least of several executions in this process; compilation does not count. Results are compared.
With --clock cpu, times are the processors', of all threads together: what else the machine does counts less.
With --isa, g++, XLA, NumPy and OpenBLAS are all kept to an older instruction set, in a child process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from benchmarks.gpu.arguments import arguments_of
from benchmarks.gpu.cases import Case, Group
from benchmarks.gpu.xla_side import XlaProgram
from benchmarks.kernels.cases import cases
from hlotool.backends.base import Backend
from hlotool.backends.cuda_emu import create
from hlotool.backends.numpy import NumpyBackend
from hlotool.parser.reader import parse_module

#: Seconds since some moment.
Clock: TypeAlias = Callable[[], float]
_CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}


def _run_on_avx2() -> int:
    """This program again, where XLA, NumPy and OpenBLAS find a CPU that has nothing newer than AVX2."""
    from numpy._core import _multiarray_umath as numpy_core

    dispatched: Mapping[str, bool] = {f: numpy_core.__cpu_features__[f] for f in numpy_core.__cpu_dispatch__}
    newer = [f for f, is_found in dispatched.items() if is_found and f.startswith(("AVX512", "X86_V4"))]
    environment = {
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": " ".join(newer),
    }
    command = [sys.executable, "-m", "benchmarks.kernels", *sys.argv[1:], "--in-child"]
    return subprocess.run(command, env=os.environ | environment, check=False).returncode


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one case, in milliseconds.

    Attributes:
        name: of the case.
        is_fused: it is elementwise operations and reductions, not a single movement of data.
        launches: number of kernels.
        numpy: time of the numpy backend.
        kernels: of the generated kernels.
        xla: of XLA.
        error: relative L2 distance of the kernels' results from the numpy backend's.
    """

    name: str
    is_fused: bool
    launches: int
    numpy: float
    kernels: float
    xla: float
    error: float

    def __str__(self) -> str:
        times = "".join(f"{t:10.2f}" for t in (self.numpy, self.kernels, self.xla))
        ratios = f"{self.numpy / self.kernels:10.2f}{self.kernels / self.xla:10.2f}"
        return f"{self.name:32}{self.launches:4}{times}{ratios}{self.error:12.1e}"


def measure(case: Case, repeats: int, emulator: Backend, clock: Clock) -> Row:
    """One case on all three."""
    module, arguments = parse_module(case.text), arguments_of(case)
    reference, kernels = NumpyBackend().compile(module), emulator.compile(module)
    xla = XlaProgram(case.text, arguments, "cpu")

    def run_xla() -> None:
        xla.enqueue()
        xla.wait()

    runs: list[Callable[[], Any]] = [
        lambda: reference.run(arguments),
        lambda: kernels.run(arguments),
        run_xla,
    ]
    times = [_least(run, repeats, clock) for run in runs]
    error = _distance(kernels.run(arguments), reference.run(arguments))
    is_fused = case.group not in (Group.INDEXING, Group.TRANSPOSE)
    return Row(case.name, is_fused, kernels.launches, *times, error)


def _least(run: Callable[[], Any], repeats: int, clock: Clock) -> float:
    found = []
    for _ in range(repeats + 1):
        start = clock()
        run()
        found.append(1e3 * (clock() - start))
    return min(found[1:])


def _distance(ours: Any, theirs: Any) -> float:
    a, b = (np.asarray(x).astype(np.float64) for x in (ours, theirs))
    return float(np.linalg.norm(a - b) / max(1e-300, np.linalg.norm(b)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.02, help="of the programs of the GPU suite")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--isa", choices=["native", "avx2"], default="native", help="instruction set of all")
    parser.add_argument("--clock", choices=list(_CLOCKS), default="wall", help="whose time is measured")
    parser.add_argument("--in-child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.isa == "avx2" and not options.in_child:
        raise SystemExit(_run_on_avx2())
    emulator = create({"march": "x86-64-v3"} if options.isa == "avx2" else {})
    print(f"{'case':32}{'n':>4}{'numpy':>10}{'kernels':>10}{'xla':>10}{'np/k':>10}{'k/xla':>10}{'error':>12}")
    rows = []
    for case in cases(options.scale):
        if options.only in case.name:
            rows.append(measure(case, options.repeats, emulator, _CLOCKS[options.clock]))
            print(rows[-1], flush=True)
    fused = [row for row in rows if row.is_fused]
    for name, chosen in (("all", rows), ("elementwise and reductions", fused)):
        if chosen:
            faster, slower = (
                median(r.numpy / r.kernels for r in chosen),
                median(r.kernels / r.xla for r in chosen),
            )
            print(
                f"{name}, median of {len(chosen)}: numpy / kernels {faster:.2f}, kernels / XLA {slower:.2f}"
            )
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
