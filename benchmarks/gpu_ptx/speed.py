"""How fast is PTX executed, and how long do programs take?

    python -m benchmarks.gpu_ptx.speed --python PYTHON [--variant triton=off] [PATH...]

Programs as the frontend made them (`*before_optimizations.txt`, `*.hlo`) are compiled by the plug-in of
PYTHON for an H100, and executed once on generated arguments. Seconds are those of the processor, of the
execution alone. Programs for several devices, and what does not run, are counted and left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import ROOT
from hlotool.backends.aot.backend import AotBackend
from hlotool.backends.gpu_ptx.executable import GpuExecutable
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.parser.reader import parse_module

#: Seconds that most programs of a corpus have.
_LIMIT = 10


@dataclass(frozen=True)
class Measured:
    """One program: its file, kernels launched, instructions of all threads, seconds."""

    path: Path
    launches: int
    instructions: int
    seconds: float


def measured(path: Path, backend: AotBackend) -> Measured:
    """Compile and execute; raises HlotoolError."""
    made = backend.made_of(parse_module(path.read_text(encoding="utf-8"), str(path)))
    assert made is not None
    executable = backend.executor.compile(made)
    assert isinstance(executable, GpuExecutable)
    arguments = generate_inputs(made, 0).values
    begin = time.process_time()
    executable.run(arguments)
    seconds = time.process_time() - begin
    return Measured(path, executable.counts.launches, executable.counts.thread_instructions, seconds)


def main() -> int:
    """Measure all programs and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", required=True, help="interpreter with jax and the plug-in for CUDA")
    parser.add_argument("--variant", default="", help="options beside the GPU")
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "corpus" / "jax"])
    given = parser.parse_args()
    backend = get_backend(",".join(filter(None, ("gpu-ptx:h100", given.variant, f"python={given.python}"))))
    assert isinstance(backend, AotBackend)
    found: list[Measured] = []
    others: Counter[str] = Counter()
    for path in given.paths:
        for file in sorted([*path.rglob("*before_optimizations.txt"), *path.rglob("*.hlo")]):
            try:
                found.append(measured(file, backend))
            except HlotoolError as error:
                others[type(error).__name__] += 1
    report(found, others)
    return 0


def report(found: list[Measured], others: Counter[str]) -> None:
    """Print a row of the table, and the programs that took longest."""
    seconds = np.array([each.seconds for each in found])
    instructions = sum(each.instructions for each in found)
    large = [each for each in found if each.instructions > 1_000_000]
    rate = sum(each.instructions for each in large) / sum(each.seconds for each in large) / 1e6
    percentiles = ", ".join(f"{np.percentile(seconds, p):.2f}" for p in (50, 90, 100))
    print(
        f"| {len(found)} | {sum(each.launches for each in found)} | {instructions / 1e6:.0f} | {rate:.1f}"
        f" ({len(large)}) | {percentiles} | {np.mean(seconds <= _LIMIT):.0%} | {sum(others.values())} |"
    )
    for each in sorted(found, key=lambda each: -each.seconds)[:8]:
        print(
            f"    {each.seconds:6.2f} s {each.instructions / 1e6:8.1f} million {each.launches:5} launches"
            f" {each.path.name}"
        )
    print(f"    not measured: {dict(others)}")


if __name__ == "__main__":
    sys.exit(main())
