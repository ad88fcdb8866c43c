"""Measures cases on one backend: a process that prints a line of JSON per finding.

    python -m benchmarks.gpu.measure --backend cuda --size 400000000 speed [CASE …]
    python -m benchmarks.gpu.measure --backend cuda --size 400000000 --xla gpu xla [CASE …]
    python -m benchmarks.gpu.measure --backend cuda --size 8000000 accuracy [CASE …]
    python -m benchmarks.gpu.measure --backend cuda --size 8000000 watched [CASE …]

`speed` takes times by the device's clock, `xla` compares with XLA on the same text in the same process,
`accuracy` with the numpy reference; `watched` runs them once, for tools that watch. A kernel that faults or
an abort of XLA ends this process; the suite goes on with the next case in another one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from benchmarks.gpu.accuracy import distance, leaves, same_bits
from benchmarks.gpu.arguments import arguments_of
from benchmarks.gpu.cases import Case, sized_cases
from benchmarks.gpu.lines import Reporter
from benchmarks.gpu.projection import DEVICE, full_size
from benchmarks.gpu.rulers import Ruler, Work, open_ruler
from benchmarks.gpu.xla_side import NoXla, XlaProgram, version
from hlotool.backends.cuda.kernel_backend import KernelExecutable
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import BackendFailed, BackendUnavailable, HlotoolError
from hlotool.parser.reader import parse_module

#: Programs that take less are run so often between two readings of the clock, which may be microseconds off.
SHORT = 200e-6
LOOPS = 20
#: Work for so many seconds is queued before it is waited for, where that is not more than so many runs.
_QUEUED = 2e-3
_WARM = 3
#: Seconds of one run, but for the first, after which nothing is left to warm up: the host takes that long.
_LONG = 0.05
#: Seconds after which a median of a few readings will do.
_ENOUGH = 1.0
_FEW = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure.

    Attributes:
        what: `speed`, `xla`, `accuracy` or `watched`.
        repeats: readings of the clock; the median counts.
        xla: platform of XLA, `gpu` or `cpu`.
        project: the path of nvcc, where the host's share of the work for a large GPU is timed, too.
    """

    what: str
    repeats: int = 30
    xla: str = "gpu"
    project: str | None = None


class Measurement:
    """One case on one backend.

    Args:
        case: what to run.
        ruler: of the backend.
        plan: what to measure, and how often.
        report: where the time goes.
    """

    def __init__(self, case: Case, ruler: Ruler, plan: Plan, report: Reporter) -> None:
        self._case = case
        self._ruler = ruler
        self._plan = plan
        self._report = report

    def findings(self) -> Iterator[dict[str, Any]]:
        """What is known so far, each time with something more."""
        found = {
            "speed": self._speed,
            "xla": self._against_xla,
            "accuracy": self._accuracy,
            "watched": self._watched,
        }
        return found[self._plan.what]()

    def _speed(self) -> Iterator[dict[str, Any]]:
        case, spending = self._case, self._report.spending
        yield {"group": case.group.title, "traffic": case.traffic, "operations": case.operations}
        with spending("arguments"):
            arguments = arguments_of(case)
        with spending("compile"):
            times, executable = self._compile()
        yield times
        with spending(DEVICE):
            run = self._ruler.bind(executable, arguments)
            times = self._times(run)
        yield times
        yield _used(executable, self._ruler)
        with spending(DEVICE):
            result = leaves(self._ruler.arrays(run()))
            with self._ruler.poisoned():
                again = leaves(self._ruler.arrays(run()))
        with spending("compare"):
            yield {"repeats_bits": same_bits(result, again)}
        if self._plan.project:
            full_size(case, self._plan.project, self._report)

    def _against_xla(self) -> Iterator[dict[str, Any]]:
        """Both are timed by the same clock here, started often and waited for once."""
        case, spending = self._case, self._report.spending
        with spending("arguments"):
            arguments = arguments_of(case)
        with spending("compile"):
            executable = self._ruler.compile(case.text)
        with spending(DEVICE):
            run = self._ruler.bind(executable, arguments)
        try:
            with spending("XLA"):
                program = XlaProgram(case.text, arguments, self._plan.xla)
                seconds = self._wall(program.enqueue, program.wait)
            found: dict[str, Any] = {"median": seconds, "compile": program.compile_seconds}
            yield {"xla": found}
            kernels = program.kernels()
            found |= {"unknown": kernels} if isinstance(kernels, str) else asdict(kernels)
            with spending(DEVICE):
                found["ours"] = ours = self._wall(run, self._ruler.wait)
            yield {"xla": found | {"speedup": seconds / ours}}
            with spending(DEVICE):
                result = leaves(self._ruler.arrays(run()))
            with spending("compare"):
                apart = distance(program.leaves(), result)
        except Exception as error:  # what XLA raises is of many kinds
            yield {"xla": {"missing": f"{type(error).__name__}: {str(error)[:300]}"}}
            return
        found |= {"speedup": seconds / ours, "relative": apart.relative, "misfits": apart.misfits}
        yield {"xla": found}

    def _accuracy(self) -> Iterator[dict[str, Any]]:
        case, spending = self._case, self._report.spending
        with spending("arguments"):
            arguments = arguments_of(case)
        with spending("compile"):
            executable = self._ruler.compile(case.text)
        with spending(DEVICE):
            result = leaves(self._ruler.arrays(self._ruler.bind(executable, arguments)()))
        with spending("reference"):
            expected = leaves(NumpyBackend().compile(parse_module(case.text)).run(arguments))
        with spending("compare"):
            yield asdict(distance(expected, result))

    def _watched(self) -> Iterator[dict[str, Any]]:
        run = self._ruler.bind(self._ruler.compile(self._case.text), arguments_of(self._case))
        self._ruler.arrays(run())
        yield {}

    def _compile(self) -> tuple[dict[str, float], KernelExecutable]:
        """The program, compiled for the first time and once more, when its kernels are cached."""
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            executable = self._ruler.compile(self._case.text)
            seconds.append(time.perf_counter() - start)
        return {"compile_cold": seconds[0], "compile_cached": seconds[1]}, executable

    def _times(self, run: Work) -> dict[str, float]:
        for number in range(_WARM):
            last = self._ruler.seconds(run, 1)
            if number and last > _LONG:
                break
        count = LOOPS if last < SHORT else 1
        seconds = self._readings(lambda: self._ruler.seconds(run, count))
        return {
            "median": statistics.median(seconds),
            "least": min(seconds),
            "most": max(seconds),
            "readings": len(seconds),
            "in_a_row": count,
        }

    def _readings(self, read: Callable[[], float]) -> list[float]:
        """As many as planned, but only a few of a program that takes very long."""
        finish = time.monotonic() + _ENOUGH
        readings: list[float] = []
        while len(readings) < self._plan.repeats and (len(readings) < _FEW or time.monotonic() < finish):
            readings.append(read())
        return readings

    def _wall(self, run: Work, wait: Work) -> float:
        """Median seconds of one execution by the clock on the wall, of several that are queued."""

        def seconds(count: int) -> float:
            start = time.perf_counter()
            for _ in range(count):
                run()
            wait()
            return (time.perf_counter() - start) / count

        for number in range(_WARM):
            last = seconds(1)
            if number and last > _LONG:
                break
        count = min(LOOPS, ceil(_QUEUED / last))
        return statistics.median(self._readings(lambda: seconds(count)))


def _used(executable: KernelExecutable, ruler: Ruler) -> dict[str, Any]:
    """Launches, what the host did instead, registers."""
    used = ruler.resources(executable)
    return {
        "launches": executable.launches,
        "notes": list(executable.notes),
        "registers": used.registers if used else None,
        "spilled": used.spilled if used else None,
    }


def _measure(cases: list[Case], ruler: Ruler, plan: Plan, report: Reporter) -> None:
    for case in cases:
        report.begin(case.name)
        try:
            for finding in Measurement(case, ruler, plan, report).findings():
                report.add(case.name, **finding)
        except (HlotoolError, ValueError, MemoryError) as error:
            report.fail(case.name, f"{type(error).__name__}: {error}")
            if isinstance(error, BackendFailed) and error.here:
                # The device is of no more use to this process.
                report.done(case.name)
                sys.exit(str(error))
        report.done(case.name)


def main() -> None:
    """Measure the cases named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("speed", "xla", "accuracy", "watched"))
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--xla", choices=("gpu", "cpu"), default="gpu", help="the platform to compare with")
    parser.add_argument("--size", type=int, required=True, help="bytes that each case moves at least")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--project", help="path of nvcc: time the host's share of the work for a large GPU")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    report = Reporter()
    try:
        ruler = open_ruler(options.backend)
        if options.what == "xla":
            report.say(xla=version(options.xla))
    except (BackendUnavailable, NoXla) as error:
        sys.exit(str(error))
    report.say(device=ruler.device, is_hardware=ruler.is_hardware)
    cases = {case.name: case for case in sized_cases(options.size)}
    wanted = [cases[name] for name in options.cases or cases]
    _measure(wanted, ruler, Plan(options.what, options.repeats, options.xla, options.project), report)


if __name__ == "__main__":
    main()
