"""Measures cases on one backend, and XLA on the same text: a process that prints a line of JSON per finding.

    python -m benchmarks.gpu.measure --backend cuda --xla gpu --scale 1 [CASE …]

A kernel that faults or an abort of XLA ends this process; `suite` goes on with the next case in another one.
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

import numpy as np

from benchmarks.gpu.accuracy import distance, same_bits
from benchmarks.gpu.arguments import arguments_of
from benchmarks.gpu.cases import Case, all_cases
from benchmarks.gpu.lines import Reporter
from benchmarks.gpu.rulers import Ruler, Work, open_ruler
from benchmarks.gpu.xla_side import NoXla, XlaProgram, version
from hlotool.backends.base import Value
from hlotool.backends.cuda.executable import KernelExecutable
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import BackendFailed, BackendUnavailable, HlotoolError
from hlotool.ir.dtypes import Array
from hlotool.parse.reader import parse_module

#: Programs that take less are run several times between two readings of the clock: launching takes as long.
SHORT = 100e-6
_LOOPS = 20
#: Work for so many seconds is queued before it is waited for, where that is not more than so many runs.
_QUEUED = 2e-3
_WARM = 3
#: Seconds after which a median of a few readings will do.
_ENOUGH = 2.0
_FEW = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure.

    Attributes:
        repeats: readings of the clock; the median counts.
        xla: platform of XLA, `gpu` or `cpu`; None to leave it out.
    """

    repeats: int
    xla: str | None


def leaves(value: Value) -> list[Array]:
    """The arrays of a result."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [np.asarray(value)]


class Measurement:
    """One case on one backend, and on XLA.

    Args:
        case: what to run.
        ruler: of the backend.
        plan: how often, and against which XLA.
    """

    def __init__(self, case: Case, ruler: Ruler, plan: Plan) -> None:
        self._case = case
        self._ruler = ruler
        self._plan = plan
        self._arguments = arguments_of(case)

    def findings(self) -> Iterator[dict[str, Any]]:
        """What is known so far, each time with something more."""
        case = self._case
        yield {"group": case.group.title, "traffic": case.traffic, "operations": case.operations}
        times, executable = self._compile()
        yield times
        run = self._ruler.bind(executable, self._arguments)
        yield self._speed(run)
        result = leaves(self._ruler.arrays(run()))
        with self._ruler.poisoned():
            again = leaves(self._ruler.arrays(run()))
        yield {"repeats_bits": same_bits(result, again), **_used(executable, self._ruler)}
        yield asdict(distance(self._reference(), result))
        if self._plan.xla:
            yield {"xla": self._xla(self._plan.xla, run, result)}

    def _compile(self) -> tuple[dict[str, float], KernelExecutable]:
        """The program, compiled for the first time and once more, when its kernels are cached."""
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            executable = self._ruler.compile(self._case.text)
            seconds.append(time.perf_counter() - start)
        return {"compile_cold": seconds[0], "compile_cached": seconds[1]}, executable

    def _speed(self, run: Work) -> dict[str, Any]:
        for _ in range(_WARM):
            run()
        self._ruler.wait()
        count = _LOOPS if self._ruler.seconds(run, 1) < SHORT else 1
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

    def _reference(self) -> list[Array]:
        return leaves(NumpyBackend().compile(parse_module(self._case.text)).run(self._arguments))

    def _xla(self, platform: str, run: Work, result: list[Array]) -> dict[str, Any]:
        """XLA's side; both are timed by the same clock here, started often and waited for once."""
        try:
            program = XlaProgram(self._case.text, self._arguments, platform)
            seconds = self._wall(program.enqueue, program.wait)
            kernels = program.kernels()
            apart = distance(program.leaves(), result)
        except Exception as error:  # what XLA raises is of many kinds
            return {"missing": f"{type(error).__name__}: {str(error)[:300]}"}
        found = {"unknown": kernels} if isinstance(kernels, str) else asdict(kernels)
        ours = self._wall(run, self._ruler.wait)
        return {
            "median": seconds,
            "ours": ours,
            "speedup": seconds / ours,
            "compile": program.compile_seconds,
            "relative": apart.relative,
            "misfits": apart.misfits,
            **found,
        }

    def _wall(self, run: Work, wait: Work) -> float:
        """Median seconds of one execution by the clock on the wall, of several that are queued."""

        def seconds(count: int) -> float:
            start = time.perf_counter()
            for _ in range(count):
                run()
            wait()
            return (time.perf_counter() - start) / count

        last = [seconds(1) for _ in range(_WARM)][-1]
        count = min(_LOOPS, ceil(_QUEUED / last))
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
            for finding in Measurement(case, ruler, plan).findings():
                report.add(case.name, **finding)
        except (HlotoolError, ValueError, MemoryError) as error:
            report.add(case.name, failed=f"{type(error).__name__}: {error}")
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
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--xla", choices=("gpu", "cpu"), help="the platform of XLA to compare with")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--basics", action="store_true", help="first measure the machine")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    report = Reporter()
    try:
        ruler = open_ruler(options.backend)
    except BackendUnavailable as error:
        sys.exit(str(error))
    report.say(device=ruler.device, is_hardware=ruler.is_hardware)
    xla = _available_xla(options.xla, report) if options.xla else None
    if options.basics:
        _measure_machine(ruler, options.scale, report)
    wanted = [c for c in all_cases(options.scale) if not options.cases or c.name in options.cases]
    _measure(wanted, ruler, Plan(options.repeats, xla), report)


def _measure_machine(ruler: Ruler, scale: float, report: Reporter) -> None:
    basics = {}
    try:
        for basic in ruler.basics(scale):
            basics[basic.name] = {"seconds": basic.seconds, "moved": basic.moved}
            report.say(basics=basics)
    except Exception as error:  # of any kind: the cases can be measured all the same
        report.say(basics=basics, basics_failed=f"{type(error).__name__}: {error}")


def _available_xla(platform: str, report: Reporter) -> str | None:
    """The platform, if XLA runs on it here."""
    try:
        report.say(xla=version(platform))
    except NoXla as error:
        report.say(xla=str(error))
        return None
    return platform


if __name__ == "__main__":
    main()
