"""What the judge takes for a wrong program with many outputs, over what it takes for the healthy one.

An early fault of the catalogue is planted in the optimised text of a dump; it counts when at least half of
the outputs are off by more than a thousandth. Both programs are replayed in this process, from their files to
the rows. Seconds are those of the processor, in all threads: what else the machine does hardly counts.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import ROOT
from benchmarks.training_steps.adam_steps import dumped_steps
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, leaves
from hlotool.ir.verifier import verify
from hlotool.judge.verdicts import Verdict
from hlotool.lab.faults import CATALOGUE
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task, select_stages
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule, Stage

#: Outputs from which on a program has many.
MANY = 20
#: Draws of a fault per program until enough are found.
_DRAWS = 80
#: Early is what stands in the first part of a computation's sites.
_EARLY = 0.25
#: Judging only, and with the search for the first wrong instruction as `run` does it.
_JUDGED, _WHOLE = ReplayOptions(first_divergence=False), ReplayOptions()
#: What only counts how many outputs are wrong.
_COUNTED = ReplayOptions(first_divergence=False, rtol=1e-3, atol=1e-6)


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the processor for one program.

    Attributes:
        name: of the dump and its module.
        fault: kind that was planted.
        outputs: arrays that the program returns.
        wrong: of them, those that are judged wrong.
        healthy: seconds from the files to the row, nothing planted.
        judged: the same of the planted program.
        whole: with the search for the first wrong instruction.
    """

    name: str
    fault: str
    outputs: int
    wrong: int
    healthy: float
    judged: float
    whole: float


def costs(paths: list[str], only: str, seed: int, faults: int) -> Iterator[Cost]:
    """Early faults in programs with many outputs: of the corpus, of JAX training steps, and under `paths`."""
    with tempfile.TemporaryDirectory() as folder:
        steps = dumped_steps(Path(folder) / "steps")
        for source in [*steps, ROOT / "corpus" / "jax", ROOT / "corpus" / "tf", *map(Path, paths)]:
            for module in open_dump(source).modules:
                if re.search(only, module.title):
                    yield from _of_module(module, Path(folder), seed, faults)


def _of_module(owner: DumpModule, folder: Path, seed: int, faults: int) -> Iterator[Cost]:
    owner = replace(owner, artefacts=())
    stages = select_stages(owner)
    if stages.reference is None or len(stages.tested) != 1:
        return
    try:
        module = load_stage(owner, stages.tested[0])
    except HlotoolError:
        return
    outputs = sum(isinstance(shape, ArrayShape) for _, shape in leaves(module.entry.root.shape))
    if outputs < MANY:
        return
    rows, _ = _replayed(Task(owner, _JUDGED))
    if len(rows) != 1 or not rows[0].leaves:
        return
    healthy = min(_replayed(Task(owner, _JUDGED))[1] for _ in range(3))
    found = 0
    for kind, planted in _planted(module, owner.title, seed):
        wrong = _dumped(stages.reference, stages.tested[0], planted, folder)
        if _wrong(_replayed(Task(wrong, _COUNTED))[0]) < outputs / 2:
            continue
        rows, judged = _replayed(Task(wrong, _JUDGED))
        _, whole = _replayed(Task(wrong, _WHOLE))
        yield Cost(owner.title, kind, outputs, _wrong(rows), healthy, judged, whole)
        found += 1
        if found == faults:
            return


def _wrong(rows: list[ModuleRecord]) -> int:
    return sum(leaf.verdict is Verdict.WRONG for row in rows for leaf in row.leaves)


def _dumped(before: Stage, after: Stage, planted: Module, folder: Path) -> DumpModule:
    """A dump of the program as it was before optimisation, and of the planted one after it."""
    target = Path(tempfile.mkdtemp(dir=folder))
    (target / before.source.name).write_bytes(before.source.read_bytes())
    (target / after.source.name).write_text(planted.to_text())
    (module,) = open_dump(target).modules
    return module


def _replayed(task: Task) -> tuple[list[ModuleRecord], float]:
    began = time.process_time()
    rows = replay_module(task)
    return rows, time.process_time() - began


def _planted(module: Module, name: str, seed: int) -> Iterator[tuple[str, Module]]:
    """The program with one early fault each, of kinds drawn by name and seed."""
    number = int(hashlib.sha256(f"{name} {seed}".encode()).hexdigest()[:12], 16)
    rng = np.random.default_rng(number)
    for _ in range(_DRAWS):
        kind = CATALOGUE[int(rng.integers(len(CATALOGUE)))]
        sites = kind.sites(module)
        if kind.poison is not None or not sites:
            continue
        site = sites[int(rng.integers(1 + int(_EARLY * len(sites))))]
        planted = kind.plant(module, site, int(rng.integers(1 << 30)))
        if not verify(planted):
            yield kind.name, planted
