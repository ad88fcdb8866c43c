"""Our replay against XLA's compile-and-run and against StableHLO's interpreter, per module, in one run.

    python benchmarks/replay.py [PATH…] [--repeats N] [--eval-timeout S] [--only REGEX]

PATH: HLO files or dump directories (their before_optimizations stages); default: the corpus and the bulk
modules below. All times in milliseconds; `single` is parse + plan + first run (XLA: parse + compile + first
run), `run` the fastest later run. Peers run in child processes and are timed inside them.
"""

from __future__ import annotations

import argparse
import pickle
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hlotool.backends.registry import get_backend  # noqa: E402
from hlotool.errors import HlotoolError  # noqa: E402
from hlotool.parse.reader import parse_module  # noqa: E402
from hlotool.values.generate import generate_inputs  # noqa: E402

_SUM = "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
_LESS = (
    "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
)

#: Modules of one operation on much data: what an interpreter written per element is slowest at.
BULK = {
    "add_1M": "ENTRY e { a = f32[1000000] parameter(0)\n ROOT r = f32[1000000] add(a, a) }",
    "tanh_1M": "ENTRY e { a = f32[1000000] parameter(0)\n ROOT r = f32[1000000] tanh(a) }",
    "reduce_1M": _SUM + "ENTRY e { a = f32[1000,1000] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[1000] reduce(a, z), dimensions={1}, to_apply=s }",
    "transpose_1M": "ENTRY e { a = f32[1000,1000] parameter(0)\n"
    " ROOT r = f32[1000,1000] transpose(a), dimensions={1,0} }",
    "dot_128": "ENTRY e { a = f32[128,128] parameter(0)\n ROOT r = f32[128,128] dot(a, a),"
    " lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    "conv_8x16x16x8": "ENTRY e { a = f32[8,16,16,8] parameter(0)\n k = f32[3,3,8,16] parameter(1)\n"
    " ROOT r = f32[8,16,16,16] convolution(a, k), window={size=3x3 pad=1_1x1_1},"
    " dim_labels=b01f_01io->b01f }",
    "sort_100k": _LESS + "ENTRY e { a = f32[100000] parameter(0)\n"
    " ROOT r = f32[100000] sort(a), dimensions={0}, is_stable=true, to_apply=s }",
    "cumsum_100k": _SUM + "ENTRY e { a = f32[100000] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[100000] reduce-window(a, z), window={size=100000 pad=99999_0}, to_apply=s }",
    "bf16_mul_1M": "ENTRY e { a = bf16[1000000] parameter(0)\n ROOT r = bf16[1000000] multiply(a, a) }",
}


@dataclass
class Row:
    """Milliseconds of one module; NaN where a side could not run it."""

    name: str
    ours_single: float = float("nan")
    ours_run: float = float("nan")
    xla_single: float = float("nan")
    xla_run: float = float("nan")
    eval_run: float = float("nan")
    note: str = ""


def modules(paths: list[str], only: str) -> Iterator[tuple[str, str]]:
    """Name and text of every module to measure."""
    if not paths:
        yield from ((n, f"HloModule {n}\n{t}") for n, t in BULK.items() if re.search(only, n))
        paths = [str(ROOT / "corpus" / "jax"), str(ROOT / "corpus" / "tf")]
    for path in map(Path, paths):
        files = sorted(path.rglob("*before_optimizations.txt")) if path.is_dir() else [path]
        for file in files:
            if re.search(only, str(file)):
                yield (
                    f"{file.parent.name}/{file.name.removesuffix('.before_optimizations.txt')[:40]}",
                    file.read_text(),
                )


def ask(peer: str, text: str, arguments: list[Any], repeats: int, timeout: float) -> dict[str, Any] | str:
    """The peer's times, or why there are none."""
    request = pickle.dumps((peer, text, arguments, repeats))
    command = [sys.executable, str(Path(__file__).with_name("peer_child.py"))]
    try:
        child = subprocess.run(command, input=request, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout:.0f} s"
    if child.returncode or not child.stdout:
        return f"died with {child.returncode}"
    answer: dict[str, Any] | str = pickle.loads(child.stdout)
    return answer


def ours(text: str, repeats: int) -> tuple[float, float, list[Any]]:
    """Milliseconds of single-shot and steady replay, and the inputs."""
    start = time.perf_counter()
    executable = get_backend("numpy").compile(parse_module(text))
    prepared = time.perf_counter() - start
    arguments = list(generate_inputs(parse_module(text), seed=0).values)
    runs = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        executable.run(arguments)
        runs.append(time.perf_counter() - start)
    return (prepared + runs[0]) * 1e3, min(runs[1:]) * 1e3, arguments


def measure(name: str, text: str, options: argparse.Namespace) -> Row:
    """One row: ours first, then both peers on the same inputs."""
    row = Row(name)
    try:
        row.ours_single, row.ours_run, arguments = ours(text, options.repeats)
    except HlotoolError as error:
        row.note = f"ours: {error}"
        return row
    xla = ask("xla", text, arguments, options.repeats, 300)
    if isinstance(xla, dict):
        row.xla_single = (xla["parse"] + xla["compile"] + xla["first"]) * 1e3
        row.xla_run = xla["run"] * 1e3
    else:
        row.note += f"xla: {xla} "
    reference = ask("eval", text, arguments, 0, options.eval_timeout)
    if isinstance(reference, dict):
        row.eval_run = reference["run"] * 1e3
    else:
        row.note += f"eval: {reference}"
    return row


def line(row: Row) -> str:
    """One line of the table."""
    numbers = (row.ours_single, row.ours_run, row.xla_single, row.xla_run, row.eval_run)
    ratios = (row.xla_single / row.ours_single, row.xla_run / row.ours_run, row.eval_run / row.ours_run)
    cells = "".join(f"{n:11.2f}" for n in numbers) + "".join(f"{r:10.2f}" for r in ratios)
    return f"{row.name[:50]:50}{cells}  {row.note[:60]}"


def summary(rows: list[Row]) -> Iterator[str]:
    """Medians of the ratios, and how often we are ahead."""
    for title, ratios in (
        ("single-shot: XLA / ours", [r.xla_single / r.ours_single for r in rows]),
        ("steady run:  XLA / ours", [r.xla_run / r.ours_run for r in rows]),
        ("steady run:  eval_module / ours", [r.eval_run / r.ours_run for r in rows]),
    ):
        known = [r for r in ratios if np.isfinite(r)]
        if known:
            ahead = sum(r > 1 for r in known)
            middle = statistics.median(known)
            yield f"{title}: median {middle:.2f}, ours faster on {ahead} of {len(known)} modules"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--eval-timeout", type=float, default=60)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    titles = ("ours single", "ours run", "xla single", "xla run", "eval run")
    ratios = ("xla/ours1", "xla/ours", "eval/ours")
    print(f"{'module':50}" + "".join(f"{t:>11}" for t in titles) + "".join(f"{t:>10}" for t in ratios))
    rows = []
    for name, text in modules(options.paths, options.only):
        rows.append(measure(name, text, options))
        print(line(rows[-1]), flush=True)
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
