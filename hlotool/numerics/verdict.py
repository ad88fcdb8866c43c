"""What is said of a leaf and of a module, with the reason."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from hlotool.ir.types import ShapeIndex
from hlotool.numerics.metrics import Metrics
from hlotool.numerics.tolerance import Tolerance


class Verdict(enum.Enum):
    """From best to worst."""

    #: Every bit is the same.
    IDENTICAL = "identical"
    #: Differs by no more than the tolerance.
    AGREE = "agree"
    #: Its value legally differs between executions: comparing it would mean nothing.
    NOT_COMPARABLE = "not comparable"
    #: Differs by more than the tolerance.
    DIFFERS = "differs"
    #: Element types, dimensions or tuple structure differ.
    STRUCTURAL = "structural"

    @property
    def rank(self) -> int:
        """0 for the best."""
        return _RANKS[self]


_RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole: that of its worst part, `identical` when there is none."""
    return max(verdicts, key=lambda v: v.rank, default=Verdict.IDENTICAL)


@dataclass(frozen=True, slots=True)
class LeafComparison:
    """One array of the result.

    Attributes:
        index: its shape index in the result.
        shape: such as `f32[4,8]`.
        verdict: what is said of it.
        reason: why, in one clause.
        metrics: the numbers; None when there was nothing to compare element by element.
        tolerance: what was accepted; None likewise.
    """

    index: ShapeIndex
    shape: str
    verdict: Verdict
    reason: str
    metrics: Metrics | None = None
    tolerance: Tolerance | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A whole result.

    Attributes:
        leaves: in tuple order.
        verdict: the worst of the leaves.
        reason: that of the worst leaf.
    """

    leaves: tuple[LeafComparison, ...]
    verdict: Verdict
    reason: str


def aggregate(leaves: Iterable[LeafComparison]) -> Comparison:
    """The comparison made of `leaves`."""
    parts = tuple(leaves)
    if not parts:
        return Comparison((), Verdict.IDENTICAL, "the result holds no arrays")
    decisive = max(parts, key=lambda leaf: leaf.verdict.rank)
    where = f"output {format_index(decisive.index)}: " if len(parts) > 1 else ""
    return Comparison(parts, decisive.verdict, where + decisive.reason)


def format_index(index: ShapeIndex) -> str:
    """`{1,0}`, as HLO writes shape indices."""
    return "{" + ",".join(map(str, index)) + "}"
