"""How long commands take until they have answered, in how much memory.

    python -m benchmarks.speed.first_verdict [--quick] [--repeat N]

Processor time, user and system, of the whole tree of processes, the least of several runs. All is pinned to
one core, where a machine can; between the runs of a row `python -c 'import numpy'` is measured, so that
machines and loads can be compared. Bytecode is cached, as of a copy that is installed. With `--quick` fleets
and constants are smaller; `benchmarks.run_all` compares these with what was measured before.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: The ruler, whose work is what starts are made of; BLAS's threads would spin.
RULER = (sys.executable, "-c", "import numpy")

_BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
_UNARY = ("tanh", "negate", "exponential", "abs", "cosine")


@dataclass(frozen=True)
class Row:
    """A command.

    Attributes:
        title: what it does.
        command: without the interpreter.
        seconds: of processor time that it may take on a quiet machine with cores of 2020.
        megabytes: that its largest process may take; 0 for any.
        rarely: how many times less often than others it is run.
    """

    title: str
    command: tuple[str, ...]
    seconds: float
    megabytes: int = 0
    rarely: int = 1


@dataclass(frozen=True)
class Measured:
    """What a command took.

    Attributes:
        seconds: of processor time, of all its processes.
        rulers: the same, in units of the ruler's.
        megabytes: of its largest process.
    """

    seconds: float
    rulers: float
    megabytes: float


def rows(folder: Path, quick: bool) -> list[Row]:
    """The commands, on programs that are written into `folder`."""
    tiny, constant = folder / "tiny", folder / "constant.hlo"
    modules, many, numbers = (40, 400, 1 << 20) if quick else (200, 2000, 8_700_000)
    replayed, looked_at = folder / "replayed", folder / "looked_at"
    write_modules(tiny, 1)
    write_modules(replayed, modules)
    write_modules(looked_at, many)
    write_constant(constant, numbers)
    run = ("run", "--no-cache")
    return [
        Row("--help", ("--help",), 0.15),
        Row("run, one tiny program", (*run, str(tiny)), 1.0),
        Row("run again: known", ("run", str(tiny)), 0.5),
        Row("check, one tiny program", ("check", str(tiny)), 0.5),
        Row("inspect, one tiny program", ("inspect", str(tiny)), 0.5),
        Row(f"run, {modules} tiny programs", (*run, str(replayed)), 15, 150, rarely=3),
        Row(f"check, {many} tiny programs", ("check", str(looked_at)), 15, 150, rarely=3),
        Row(f"inspect, {many} tiny programs", ("inspect", str(looked_at)), 15, 150, rarely=3),
        Row(f"run, a constant of {numbers} numbers", (*run, str(constant)), 10, 1024, rarely=3),
    ]


def write_modules(folder: Path, count: int) -> None:
    """`count` distinct programs of seven instructions, before and after a compiler that swaps operands."""
    folder.mkdir()
    for number in range(count):
        for stage, swapped in (("before_optimizations", False), ("cpu_after_optimizations", True)):
            path = folder / f"module_{number:04d}.jit_f{number}.{stage}.txt"
            path.write_text(_program(number, swapped), encoding="utf-8")


def _program(number: int, swapped: bool) -> str:
    draw = random.Random(number)
    first, second, third = (draw.choice(_BINARY) for _ in range(3))
    inner, outer = (draw.choice(_UNARY) for _ in range(2))
    shape = f"f32[{8 + number % 50}]{{0}}"
    operands = "y, x" if swapped and first != "subtract" else "x, y"
    return f"""HloModule jit_f{number}, entry_computation_layout={{({shape}, {shape})->{shape}}}

ENTRY main.{number} {{
  x = {shape} parameter(0)
  y = {shape} parameter(1)
  a = {shape} {first}({operands})
  b = {shape} {inner}(a)
  c = {shape} {second}(b, x)
  d = {shape} {outer}(c)
  ROOT e = {shape} {third}(d, y)
}}
"""


def write_constant(path: Path, numbers: int) -> None:
    """A program that adds a constant; twelve bytes of text for each number.

    Written piece by piece: a process counts as its own what its parent held when it was started.
    """
    draw = random.Random(0)
    shape = f"f32[{numbers}]{{0}}"
    with path.open("w", encoding="utf-8") as file:
        file.write(f"HloModule constant\nENTRY e {{\n  x = {shape} parameter(0)\n  c = {shape} constant({{0")
        file.writelines(f", {draw.gauss(0, 1):.8g}" for _ in range(numbers - 1))
        file.write(f"}})\n  ROOT y = {shape} add(x, c)\n}}\n")


def measured(row: Row, repeat: int) -> Measured:
    """The least of `repeat` runs, each beside the ruler."""
    command = (sys.executable, "-m", "hlotool", *row.command)
    taken = [(_run(RULER)[0], *_run(command)) for _ in range(max(2, repeat // row.rarely))]
    rulers, seconds, megabytes = map(min, zip(*taken))
    return Measured(seconds, seconds / rulers, megabytes)


def _run(command: Sequence[str]) -> tuple[float, float]:
    """Seconds of processor time of a command and its children, and megabytes of the largest of them."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(
    quick: bool, repeat: int, titles: Collection[str] | None = None
) -> Iterator[tuple[Row, Measured]]:
    """Each row, or those of some titles; the first run of a command, which fills caches, does not count."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ |= {
            "HLOTOOL_CACHE": str(folder / "cache"),
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "OPENBLAS_NUM_THREADS": "1",
        }
        made = [row for row in rows(folder, quick) if titles is None or row.title in titles]
        for row in made:
            if row.rarely == 1:
                _run((sys.executable, "-m", "hlotool", *row.command))
        for row in made:
            yield row, measured(row, repeat)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeat", type=int, default=6)
    asked = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'':40}{'s':>8}{'goal':>8}{'rulers':>8}{'MB':>8}{'goal':>8}")
    for row, found in measure(asked.quick, asked.repeat):
        goal = row.megabytes or ""
        print(
            f"{row.title:40}{found.seconds:8.2f}{row.seconds:8.2f}{found.rulers:8.2f}"
            f"{found.megabytes:8.0f}{goal:>8}",
            flush=True,
        )
    print(f"load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
