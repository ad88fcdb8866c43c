"""Dumps with planted histories, and bisections of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Self

import msgspec

from hlotool.blame.bisection.directory import Findings, bisect_directory
from hlotool.blame.bisection.stages import StageOracle
from hlotool.blame.steps import Listener, Steps
from hlotool.runs.options.kept import PRELOAD, ReplayOptions
from hlotool.runs.task import Task
from hlotool.sources.directory import open_dump
from hlotool.system.cache import Journal
from hlotool.system.executor import Done, Limits
from hlotool.system.pool import Pool

#: Changes the text of stage `number`.
Change = Callable[[int, str], str]


def workers(jobs: int = 1) -> Pool:
    return Pool(Limits(jobs, 120.0), PRELOAD, "numpy")


class Here(Pool):
    """In place of a pool of workers: everything runs in this process, with what a test has put into it."""

    def __init__(self, *_: object) -> None:
        self.notes = []

    def __enter__(self) -> Self:
        return self

    def close(self) -> None:
        """There is nothing to close."""

    def run(self, function: str, arguments: Iterable[object]) -> Iterator[Done]:
        module, _, name = function.partition(":")
        called = getattr(import_module(module), name)
        for index, argument in enumerate(arguments):
            yield Done(index, msgspec.msgpack.encode(called(argument)), 0.0)


def written_dump(folder: Path, given: str, wrong: str) -> Path:
    """A dump of three stages, of which `algsimp` made the second wrong."""
    names = (
        "before_optimizations",
        "0000.simplification.after_algsimp.before_dce",
        "cpu_after_optimizations",
    )
    for name, text in zip(names, (given, wrong, wrong)):
        (folder / f"module_0000.m.{name}.txt").write_text(text, encoding="utf-8")
    return folder


def tasks_in(folder: Path, *, results: bool = False) -> list[Task]:
    """The modules of a dump, with the arguments (and results) that lie beside them."""
    inputs, outputs = folder / "inputs.npz", folder / "outputs.npz"
    options = ReplayOptions(
        inputs=str(inputs) if inputs.exists() else None,
        outputs=str(outputs) if results and outputs.exists() else None,
    )
    return [Task(replace(module, artefacts=()), options) for module in open_dump(folder).modules]


def bisected(
    folder: Path,
    pool: Pool,
    *,
    results: bool = False,
    exhaustive: bool = False,
    every_module: bool = False,
    journal: Journal | None = None,
    listener: Listener | None = None,
) -> Findings:
    steps = Steps(journal, listener)
    oracle = StageOracle(pool, steps)
    findings = Findings()
    bisect_directory(tasks_in(folder, results=results), oracle, findings, exhaustive, every_module)
    findings.comparisons = oracle.questions
    return findings


def changed_copy(source: Path, target: Path, change: Change) -> Path:
    """A copy of the stages of a dump of one module, each changed; stages that become empty are left out."""
    target.mkdir(parents=True, exist_ok=True)
    [module] = open_dump(source).modules
    for number, stage in enumerate(module.stages):
        text = change(number, stage.source.read_text())
        if text:
            (target / stage.source.name).write_text(text, encoding="utf-8")
    for name in ("inputs.npz", "outputs.npz"):
        if (source / name).exists():
            (target / name).write_bytes((source / name).read_bytes())
    return target
