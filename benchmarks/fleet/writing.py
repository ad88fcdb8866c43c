"""Fleets as they are measured: distinct programs made from the corpus, written for several hosts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

from support.renaming import renamed

from benchmarks import ROOT
from hlotool.runs.fleet.normal_form import normal_form
from hlotool.sources.directory import open_dumps

#: Larger texts are left out: their replays take seconds each, and say nothing about a fleet.
_LARGEST = 40_000


def write_fleet(folder: Path, modules: int, distinct: int, seed: int) -> None:
    """Write `modules` modules of `distinct` programs, spread over hosts."""
    programs = list(itertools.islice(distinct_pairs(seed), distinct))
    if len(programs) < distinct:
        raise SystemExit(f"the corpus gives only {len(programs)} distinct programs")
    for number in range(modules):
        host, program = divmod(number, distinct)
        name, before, after = programs[program]
        place = folder / f"host{host:03d}"
        place.mkdir(parents=True, exist_ok=True)
        tag = f"h{host}"
        for label, text in (("before_optimizations", before), ("cpu_after_optimizations", after)):
            own = text if host == 0 else renamed(text, tag, program)
            (place / f"module_{program:04d}.{name}_{tag}.{label}.txt").write_text(own, encoding="utf-8")


def distinct_pairs(seed: int) -> Iterator[tuple[str, str, str]]:
    """Name, and two texts of one module, the later one after more passes: no two are the same programs."""
    found = [module for dump in open_dumps([str(ROOT / "corpus/jax")]) for module in dump.modules]
    pairs = [
        (module.name, before.text, after.text)
        for module in found
        for before, after in itertools.combinations(module.stages, 2)
        if before.text is not None and after.text is not None
    ]
    random.Random(seed).shuffle(pairs)
    seen: set[tuple[str, str]] = set()
    for name, one, other in pairs:
        before, after = one.read_text(), other.read_text()
        key = normal_form(before).key, normal_form(after).key
        if max(len(before), len(after)) <= _LARGEST and key not in seen and "{...}" not in before + after:
            seen.add(key)
            yield name, before, after
