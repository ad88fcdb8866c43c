"""What the exact arbiter is measured on: dumps, HLO files, and JAX programs that a seed draws."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks import ROOT, SHARED
from benchmarks.exact.programs import program_names, program_text
from benchmarks.verdicts.programs import NOT_HEALTHY
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule

#: More real programs than the corpus has, where they lie on this machine.


@dataclass(frozen=True, eq=False)
class Subject:
    """A program as a frontend made it, or somebody wrote it.

    Attributes:
        name: unique.
        group: heading of the tables.
        dumped: the module of a dump that it comes from.
        path: of its file.
    """

    name: str
    group: str
    dumped: DumpModule | None = None
    path: Path | None = None

    @cached_property
    def module(self) -> Module:
        """The program; raises what reading it raises."""
        if self.dumped is not None:
            return load_stage(self.dumped, self.dumped.stages[0])
        text = self.path.read_text(encoding="utf-8") if self.path is not None else program_text(self.name)
        return parse_module(text, self.name)


def subjects(seed: int, only: str = "") -> Iterator[Subject]:
    """All programs.

    Args:
        seed: of the JAX programs.
        only: regular expression that names must match.
    """
    for subject in (*_dumped(), *_files(), *_drawn(seed)):
        is_healthy = not NOT_HEALTHY.keys() & set(re.split(r"[/]|\.hlo$|\.jit_", subject.name))
        if is_healthy and re.search(only, subject.name):
            yield subject


def subject_named(name: str, seed: int) -> Subject:
    """One of `subjects`."""
    return next(subjects(seed, f"^{re.escape(name)}$"))


def _dumped() -> Iterator[Subject]:
    folders = [
        (folder, "corpus dumps") for f in ("jax", "tf") for folder in sorted((ROOT / "corpus" / f).iterdir())
    ]
    folders += [(SHARED / "dumps" / "torch_xla_train", "shared dumps")]
    for folder, group in folders:
        if not folder.exists():
            continue
        for dumped in open_dump(str(folder)).modules:
            if dumped.stages:
                yield Subject(f"{folder.name}/{dumped.title}", group, dumped)


def _files() -> Iterator[Subject]:
    for path in sorted((ROOT / "corpus" / "modules").glob("*.hlo")):
        yield Subject(path.stem, "corpus modules", path=path)
    for path in sorted((SHARED / "hlo" / "xla").rglob("*.hlo")):
        yield Subject(f"xla/{path.relative_to(SHARED / 'hlo' / 'xla')}", "XLA's own files", path=path)


def _drawn(seed: int) -> Iterator[Subject]:
    for name in program_names(seed):
        yield Subject(name, "new JAX programs")
