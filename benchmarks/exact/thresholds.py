"""What half and twice each threshold of exact arithmetic does: to pairs, drawn constants and roots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from benchmarks.exact.constants import fits, functions, relations, roots
from benchmarks.exact.cost import programs
from benchmarks.exact.integers import labels
from hlotool.backends.field.snapping import reading_of
from hlotool.facts import thresholds
from hlotool.ir.module import Module
from hlotool.runs.exact.result import ExactResult, Relation
from hlotool.runs.exact.task import compare_modules


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What is counted at half, once and twice the value of a threshold."""

    name: str
    value: float
    counted: str
    found: Sequence[str]

    def __str__(self) -> str:
        return f"| {self.name} | {self.value:g} | {self.counted} | {' | '.join(self.found)} |"


SENSITIVITY_HEADING = """| threshold | value | what is counted | half | as it is | double |
|---|---|---|---|---|---|"""

_RELATIONS = "products explained; 3 ulps off; unrelated ones"
_FITS = "programs in doubt; 3 ulps off"
_ROOTS = "equal with up to 8 roots; with 32"


def sensitivities(paths: Sequence[Path], folder: Path, only: str = "") -> Iterator[Sensitivity]:
    """What depends on the thresholds of constants and roots.

    Args:
        paths: dumps of pairs before and after optimisation.
        folder: where what XLA makes of programs is kept.
        only: one threshold; all where it is empty.
    """
    pairs: list[tuple[Module, Module]] = []

    def counted_pairs() -> str:
        if not pairs:
            pairs.extend((before, after) for _, before, after in programs(paths))
        return _relations(pairs)

    folded: list[Callable[[], str]] = []

    def counted_functions() -> str:
        if not folded:
            folded.append(functions(folder))
        return folded[0]()

    measures: Mapping[str, tuple[str, Callable[[], str]]] = {
        "SNAP_UNITS": ("pairs equal / unequal / refused", counted_pairs),
        "TINY_CONSTANT": ("pairs equal / unequal / refused", counted_pairs),
        "FURTHER_UNITS": (_RELATIONS, relations),
        "ACCIDENTS": (_RELATIONS, relations),
        "FOLDED_UNITS": ("folded functions of constants known", counted_functions),
        "FOLDS": (_FITS, fits),
        "SAME_FIT": (_FITS, fits),
        "INTEGERS": ("seeds that show a fault in one of ten labels", labels),
        "ROOTS": (_ROOTS, roots),
        "POINTS_FOR_ROOTS": (_ROOTS, roots),
        "EXACT_DEGREE": ("probability that is stated for two points", _probability),
    }
    for name, (what, measure) in measures.items():
        if only in ("", name):
            yield _sensitivity(name, what, measure)


def _sensitivity(name: str, what: str, measure: Callable[[], str]) -> Sensitivity:
    usual = getattr(thresholds, name)
    found = []
    for factor in (0.5, 1.0, 2.0):
        setattr(thresholds, name, replace(usual, value=usual.value * factor))
        reading_of.cache_clear()
        found.append(measure())
    setattr(thresholds, name, usual)
    reading_of.cache_clear()
    return Sensitivity(name, usual.value, what, found)


def _relations(pairs: Sequence[tuple[Module, Module]]) -> str:
    counts = Counter(compare_modules(before, after).relation for before, after in pairs)
    return " / ".join(str(counts[relation]) for relation in Relation)


def _probability() -> str:
    return f"{ExactResult(trials=2).error_probability:.1e}"
