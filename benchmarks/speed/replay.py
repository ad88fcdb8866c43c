"""hlotool's replay against XLA, StableHLO's interpreter and XLA's own evaluator, per module, in one run.

    python -m benchmarks.speed.replay [PATH…] [--repeats N] [--only REGEX] [--timeout S]
                                       [--evaluator-python PYTHON]

PATH: HLO files or dump directories (their before_optimizations stages); default: single operations on much
data, JAX programs (`programs.py`, `untuned.py` and `fresh.py`) and the corpus. Times are milliseconds;
`single` is parse + plan + first run (XLA: parse + compile + first run), `run` the fastest later run, each in
a fresh process after imports. `cpu/XLA` compares the processor time of a run, of all threads, which other
processes on the machine disturb less. `eval` is eval_module; `evaluator` needs a Python with jaxlib 0.4.13
(see evaluator_child.py).
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np

from benchmarks.common.modules import BenchmarkModule, benchmark_modules
from benchmarks.speed.peers import Answer, ask, ask_evaluator
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.parser.reader import parse_module

#: Milliseconds from which a module's run counts as long.
LONG = 5.0

#: Seconds that the clock of processor time can tell apart.
_CLOCK = 1e-6

_COLUMNS = ("single", "run", "XLA single", "XLA run", "eval", "evaluator")
_RATIOS = ("XLA1/1", "run/XLA", "cpu/XLA", "eval/run", "evaltr/run")


@dataclass
class Row:
    """Milliseconds of one module; NaN where a side could not run it."""

    module: BenchmarkModule
    single: float = nan
    run: float = nan
    xla_single: float = nan
    xla_run: float = nan
    eval_run: float = nan
    evaluator_run: float = nan
    processor_ratio: float = nan
    note: str = ""

    @property
    def is_long(self) -> bool:
        """Whether hlotool or XLA takes long to run it."""
        return max(self.run, self.xla_run) > LONG

    def __str__(self) -> str:
        times = (self.single, self.run, self.xla_single, self.xla_run, self.eval_run, self.evaluator_run)
        ratios = (
            self.xla_single / self.single,
            self.run / self.xla_run,
            self.processor_ratio,
            self.eval_run / self.run,
            self.evaluator_run / self.run,
        )
        cells = [_cell(t, 11, 2) for t in times] + [_cell(r, 11, 2 if r < 100 else 0) for r in ratios]
        return f"{self.module.name[:44]:44}{''.join(cells)}  {self.note}"


def _cell(number: float, width: int, digits: int) -> str:
    return f"{number:{width}.{digits}f}" if isfinite(number) else f"{'-':>{width}}"


def measure(module: BenchmarkModule, options: argparse.Namespace) -> Row:
    """One row: all sides on the same inputs, one after the other."""
    row = Row(module)
    try:
        arguments = list(generate_inputs(parse_module(module.text), seed=0).values)
    except HlotoolError as error:
        row.note = f"{error}"[:80]
        return row
    ours = ask("hlotool", module.text, arguments, options.repeats, options.timeout)
    xla = ask("xla", module.text, arguments, options.repeats, 300)
    row.single, row.run = _milliseconds(row, "hlotool", ours, ("parse", "plan", "first"))
    row.xla_single, row.xla_run = _milliseconds(row, "XLA", xla, ("parse", "compile", "first"))
    _, row.eval_run = _milliseconds(row, "", ask("eval", module.text, arguments, 0, options.timeout))
    if options.evaluator_python:
        answer = ask_evaluator(options.evaluator_python, module.text, arguments, options.timeout)
        _, row.evaluator_run = _milliseconds(row, "", answer)
    if isinstance(ours, dict) and isinstance(xla, dict):
        row.processor_ratio = ours["processor"] / max(xla["processor"], _CLOCK)
        if not _agree(ours["outputs"], xla["outputs"]):
            row.note += "results differ from XLA's"
    return row


def _milliseconds(row: Row, peer: str, answer: Answer, single: tuple[str, ...] = ()) -> tuple[float, float]:
    """Of the single shot and of a run; what kept a named peer from answering is noted."""
    if isinstance(answer, str):
        row.note += f"{peer}: {answer} "[:60] if peer else ""
        return nan, nan
    return sum(answer[part] for part in single) * 1e3, answer["run"] * 1e3


def _agree(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Whether the two have plainly run the same program; the differential tests look closer."""
    return len(ours) == len(theirs) and all(map(_close, ours, theirs))


def _close(a: Any, b: Any) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    scale = np.abs(y[np.isfinite(y)]).max(initial=0)
    return bool(
        (np.isclose(x, y, rtol=0.05, atol=0.05 * scale, equal_nan=True)).mean() > 0.99 if x.size else 1
    )


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """What the goals ask for, and whether it is so."""
    bulk = [r for r in rows if r.module.group == "bulk"]
    slow = [r for r in rows if r.eval_run > 1]
    yield _speedup("(a) eval_module / run, modules above 1 ms", [r.eval_run / r.run for r in slow])
    yield _speedup("(a) eval_module / run, bulk", [r.eval_run / r.run for r in bulk], least_median=200)
    yield _speedup("(a) evaluator / run, bulk", [r.evaluator_run / r.run for r in bulk], least_median=10)
    for group in ("program", "dump"):
        ratios = [r.evaluator_run / r.run for r in rows if r.module.group == group]
        yield _speedup(f"    evaluator / run, {group}s", ratios)
    for group in ("bulk", "program", "dump"):
        ratios = [r.xla_single / r.single for r in rows if r.module.group == group]
        yield _speedup(f"(b) single shot, XLA / hlotool, {group}", ratios, least_share=0.8)
    long = [r for r in rows if r.is_long]
    yield _slowdown("(c) run / XLA's run", [r.run / r.xla_run for r in long], goals=(3, 10))
    for group in ("program", "untuned", "fresh"):
        ratios = [r.processor_ratio for r in long if r.module.group == group]
        yield _slowdown(f"    in processor time, {group}", ratios, goals=(1.5, 5))


def _speedup(title: str, ratios: Sequence[float], least_median: float = 1, least_share: float = 1) -> str:
    known = [r for r in ratios if isfinite(r)]
    if not known:
        return f"{title}: not measured"
    median, ahead = statistics.median(known), sum(r > 1 for r in known)
    verdict = _verdict(median >= least_median and ahead >= least_share * len(known))
    return f"{title}: median {median:.1f}, hlotool faster on {ahead} of {len(known)}: {verdict}"


def _slowdown(title: str, ratios: Sequence[float], goals: tuple[float, float]) -> str:
    """Of the median and of the 90th percentile."""
    known = sorted(filter(isfinite, ratios))
    if not known:
        return f"{title}: not measured"
    median, high = statistics.median(known), known[min(len(known) - 1, int(0.9 * len(known)))]
    verdict = _verdict(median <= goals[0] and high <= goals[1])
    modules = f"{len(known)} modules above {LONG:.0f} ms"
    return f"{title}, {modules}: median {median:.2f}, 90th percentile {high:.2f}: {verdict}"


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for each interpreter's answer")
    parser.add_argument("--evaluator-python", default="", metavar="PYTHON")
    options = parser.parse_args()
    print(f"{'module':44}" + "".join(f"{title:>11}" for title in (*_COLUMNS, *_RATIOS)))
    rows = []
    for module in benchmark_modules(options.paths, options.only):
        rows.append(measure(module, options))
        print(rows[-1], flush=True)
    print("\n".join(summary(rows)))
    print(f"load average at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
