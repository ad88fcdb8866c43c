"""Generated kernels on the CPU beside the numpy backend and XLA on the same programs, one after the other.

    python -m benchmarks.kernels [--scale 0.02] [--only softmax]

Times are the least of several executions in this process; compilation does not count. Results are compared.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.gpu.arguments import arguments_of
from benchmarks.gpu.cases import Case, Group, Input, all_cases
from benchmarks.gpu.xla_side import XlaProgram
from hlotool.backends.cuda_emu.backend import EmulatorBackend
from hlotool.backends.numpy import NumpyBackend
from hlotool.parse.reader import parse_module

#: Programs of elementwise functions, by name; x and y are of 4 M elements.
_FUNCTIONS = {
    "gelu": "c0 multiply(p0, p0)|c1 multiply(v0, p0)|c2 multiply(v1, 0.044715)|c3 add(p0, v2)|"
    "c4 multiply(v3, 0.7978845)|c5 tanh(v4)|c6 add(v5, 1)|c7 multiply(v6, p0)|c8 multiply(v7, 0.5)",
    "logistic_loss": "a exponential(p0)|b log-plus-one(v0)|c multiply(p0, p1)|d subtract(v1, v2)",
    "power": "a abs(p0)|b add(v0, 0.5)|c log(v1)|d multiply(v2, p1)|e exponential(v3)",
    "gaussian": "a multiply(p0, p0)|b multiply(v0, -0.5)|c exponential(v1)|d erf(p1)|e multiply(v2, v3)",
    "silu": "a logistic(p0)|b multiply(v0, p0)|c multiply(v1, p1)",
    "norm": "a multiply(p0, p0)|b multiply(p1, p1)|c add(v0, v1)|d add(v2, 1)|e rsqrt(v3)|f multiply(v4, p0)",
}

_SIZE = 1 << 22


def _function(name: str, kind: str, size: int = _SIZE) -> Case:
    """A case out of a line of `_FUNCTIONS`: steps, operations on earlier ones and numbers."""
    array, lines = f"{kind}[{size}]", []
    steps = [step.split(" ", 1)[1].rpartition(" ") for step in _FUNCTIONS[name].split("|")]
    for number, (_, _, _) in enumerate(steps):
        text = _FUNCTIONS[name].split("|")[number].split(" ", 1)[1]
        opcode, _, operands = text.removeprefix("p0 ").partition("(")
        names = []
        for place, operand in enumerate(operands.rstrip(")").split(", ")):
            if operand[0] in "pv":
                names.append(operand)
                continue
            lines.append(f"  k{number}{place} = {kind}[] constant({operand})")
            lines.append(f"  b{number}{place} = {array} broadcast(k{number}{place}), dimensions={{}}")
            names.append(f"b{number}{place}")
        root = "ROOT " if number == len(steps) - 1 else ""
        lines.append(f"  {root}v{number} = {array} {opcode}({', '.join(names)})")
    inputs = (Input(kind, (size,)),) * 2
    parameters = [f"  p{n} = {array} parameter({n})" for n in range(2)]
    text = f"HloModule {name}\nENTRY main {{\n" + "\n".join([*parameters, *lines]) + "\n}\n"
    return Case(f"{name}_{kind}", Group.ELEMENTWISE, text, inputs, 0)


def cases(scale: float) -> Iterator[Case]:
    """Those of the GPU suite that kernels compute, of 4 to 64 MB at scale 0.02, and functions."""
    yield from (case for case in all_cases(scale) if case.group.is_fused)
    for name in _FUNCTIONS:
        for kind in ("f32", "bf16"):
            yield _function(name, kind)


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one case, in milliseconds.

    Attributes:
        name: of the case.
        launches: number of kernels.
        numpy: time of the numpy backend.
        kernels: of the generated kernels.
        xla: of XLA.
        error: relative L2 distance of the kernels' results from the numpy backend's.
    """

    name: str
    launches: int
    numpy: float
    kernels: float
    xla: float
    error: float

    def __str__(self) -> str:
        times = "".join(f"{t:10.2f}" for t in (self.numpy, self.kernels, self.xla))
        ratios = f"{self.numpy / self.kernels:10.2f}{self.kernels / self.xla:10.2f}"
        return f"{self.name:32}{self.launches:4}{times}{ratios}{self.error:12.1e}"


def measure(case: Case, repeats: int) -> Row:
    """One case on all three."""
    module, arguments = parse_module(case.text), arguments_of(case)
    reference, kernels = NumpyBackend().compile(module), EmulatorBackend().compile(module)
    xla = XlaProgram(case.text, arguments, "cpu")

    def run_xla() -> None:
        xla.enqueue()
        xla.wait()

    runs: list[Callable[[], Any]] = [
        lambda: reference.run(arguments),
        lambda: kernels.run(arguments),
        run_xla,
    ]
    times = [_least(run, repeats) for run in runs]
    error = _distance(kernels.run(arguments), reference.run(arguments))
    return Row(case.name, kernels.launches, *times, error)


def _least(run: Callable[[], Any], repeats: int) -> float:
    found = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run()
        found.append(1e3 * (time.perf_counter() - start))
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
    options = parser.parse_args()
    print(f"{'case':32}{'n':>4}{'numpy':>10}{'kernels':>10}{'xla':>10}{'np/k':>10}{'k/xla':>10}{'error':>12}")
    rows = []
    for case in cases(options.scale):
        if options.only in case.name:
            rows.append(measure(case, options.repeats))
            print(rows[-1], flush=True)
    faster, slower = (median(r.numpy / r.kernels for r in rows), median(r.kernels / r.xla for r in rows))
    print(f"numpy / kernels, median of {len(rows)}: {faster:.2f}; kernels / XLA: {slower:.2f}")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
