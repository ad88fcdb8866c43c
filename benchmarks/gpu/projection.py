"""What the first call takes on a large GPU, as far as a machine without one can tell: the host's share.

A dry run counts the seconds of processors of every part by kind of work. Its cases are small, its kernels are
compiled by g++ and run on the CPU; so what depends on that is done for the full size, too, by the compiler
that a GPU needs, and counts instead. What the device itself takes, seconds in all, is left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.accuracy import distance, leaves, same_bits
from benchmarks.gpu.arguments import arguments_of
from benchmarks.gpu.cases import Case, sized_cases
from benchmarks.gpu.lines import Reporter
from benchmarks.gpu.work import PROCESSES
from hlotool.backends.cuda.backend import compile_kernels
from hlotool.backends.cuda.toolchain import Nvcc
from hlotool.backends.numpy import NumpyBackend
from hlotool.parser.reader import parse_module

#: Bytes that a case moves on an H200: what its copy ceiling, 4.2 TB/s, moves in `rulers.LONG_ENOUGH`.
FULL = 420_000_000
#: What the kernels are compiled for then.
_ARCHITECTURE = "sm_90"

#: Kinds of work that the table has a column for.
KINDS = ("arguments", "compile", "reference", "XLA", "compare")
#: What counts instead as for the full size, by part. `xla` and `accuracy` find the kernels that `speed`
#: compiled.
_IN_FULL = {
    "speed": {"arguments": "full arguments", "compile": "full compile", "compare": "full bits"},
    "xla": {"arguments": "full arguments", "compare": "full distance"},
    "accuracy": {
        "arguments": "full arguments",
        "reference": "full reference",
        "compare": "full distance",
    },
}
#: Every so many elements differ, so that no piece of a result is quick to compare.
_APART = 1000
#: What a device does, or here its stand-in, which does not count.
DEVICE = "device"

#: Seconds that XLA for GPUs takes to start, and for one program: measured on 65 programs that were compiled
#: without a device. XLA for CPUs, which a dry run has, is quicker.
_XLA_START, _XLA_PROGRAM = 5.0, 1.0


def full_size(case: Case, compiler: str, report: Reporter) -> None:
    """Do the host's share of the work on a case as a large GPU has it; says what it takes.

    Args:
        case: at any size.
        compiler: the path of nvcc.
        report: where it says so.
    """
    from support.gpu_kernels import kernels_of

    full = next(c for c in sized_cases(FULL) if c.name == case.name)
    with report.spending("full arguments"):
        arguments = arguments_of(full)
    with report.spending("full compile"), tempfile.TemporaryDirectory() as folder:
        for _ in range(2):  # the second time only the generation counts
            kernels = kernels_of(parse_module(full.text))
        compile_kernels(kernels, _ARCHITECTURE, Nvcc(compiler), Path(folder))
    with report.spending("full reference"):
        result = leaves(NumpyBackend().compile(parse_module(full.text)).run(arguments))
    other = [leaf.copy() for leaf in result]
    with report.spending("full bits"):
        same_bits(result, other)
    for leaf in other:
        leaf.reshape(-1)[::_APART] += leaf.dtype.type(1)
    with report.spending("full distance"):
        distance(result, other)


@dataclass(frozen=True, slots=True)
class Projected:
    """One part of the first call.

    Attributes:
        name: of the part.
        kinds: seconds of processors by kind of work, with what is left as `rest`.
        seconds: that the part is expected to take.
        budget: seconds that it may take.
    """

    name: str
    kinds: Mapping[str, float]
    seconds: float
    budget: float


def projected(parts: Mapping[str, Mapping[str, Any]], budgets: Mapping[str, float]) -> Iterator[Projected]:
    """Each part of a dry run as the first call on a GPU is expected to have it.

    Args:
        parts: what the dry run found.
        budgets: seconds of each part; one that uses all it gets, or that needs a GPU, counts with these.
    """
    full = parts.get("speed", {}).get("spent", {})
    for name, part in parts.items():
        kinds = dict(_kinds(name, part, full))
        seconds = sum(kinds.values())
        if name in ("fuzz", "sanitizers"):
            seconds = budgets[name]
        elif name in ("accuracy", "tests"):
            seconds /= PROCESSES
        elif name == "xla":
            seconds += max(0.0, _XLA_START + _XLA_PROGRAM * len(part.get("done", ())) - kinds["XLA"])
        yield Projected(name, kinds, seconds, budgets[name])


def _kinds(
    name: str, part: Mapping[str, Any], full: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, float]]:
    spent = {kind: each["cpu"] for kind, each in part.get("spent", {}).items()}
    for kind in KINDS:
        instead = _IN_FULL.get(name, {}).get(kind, "")
        yield kind, full[instead]["cpu"] if instead in full else spent.get(kind, 0.0)
    yield "rest", max(0.0, part.get("cpu", 0.0) - sum(spent.values()))
