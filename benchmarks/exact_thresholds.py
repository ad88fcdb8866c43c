"""How many pairs are equal, unequal and refused at half, once and twice each threshold of constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from exact_cost import programs

from hlotool.backends.field.snapping import reading_of
from hlotool.ir.module import Module
from hlotool.numerics import thresholds
from hlotool.numerics.thresholds import Threshold
from hlotool.replay.exact import Relation
from hlotool.replay.exact.task import compare_modules


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How many pairs are equal, unequal and refused at half, once and twice the value of a threshold."""

    name: str
    value: float
    counts: dict[str, dict[str, int]]

    def __str__(self) -> str:
        cells = [" / ".join(str(c.get(r.value, 0)) for r in Relation) for c in self.counts.values()]
        return f"| {self.name} | {self.value:g} | {' | '.join(cells)} |"


SENSITIVITY_HEADING = """Pairs that are equal / unequal / refused:

| threshold | value | half | as it is | double |
|---|---|---|---|---|"""


def sensitivities(paths: Sequence[Path]) -> Iterator[Sensitivity]:
    """What depends on the thresholds of constants: corpus pairs before and after optimisation."""
    pairs = [(before, after) for _, before, after in programs(paths)]
    usual_counts = _relations(pairs)
    for name, usual in vars(thresholds).copy().items():
        if not isinstance(usual, Threshold) or usual.table != thresholds.EXACT:
            continue
        counts = {}
        for factor in (0.5, 1.0, 2.0):
            setattr(thresholds, name, replace(usual, value=usual.value * factor))
            reading_of.cache_clear()
            counts[f"{factor:g}"] = usual_counts if factor == 1 else _relations(pairs)
        setattr(thresholds, name, usual)
        reading_of.cache_clear()
        yield Sensitivity(name, usual.value, counts)


def _relations(pairs: Sequence[tuple[Module, Module]]) -> dict[str, int]:
    return dict(Counter(compare_modules(before, after).relation.value for before, after in pairs))
