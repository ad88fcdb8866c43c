"""The comparison of two results: what is said of each leaf and of the whole, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlotool.findings.comparison import EqualityRecord, EvidenceRecord
from hlotool.findings.verdict import AGREEING, Verdict
from hlotool.ir.types import ShapeIndex
from hlotool.numerics.metrics import Metrics
from hlotool.numerics.tolerance import Tolerance


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
        evidence: what the verdict rests on; None where the tolerance decides.
        exact: what the programs are as functions of real numbers; None where that was not asked.
    """

    index: ShapeIndex
    shape: str
    verdict: Verdict
    reason: str
    metrics: Metrics | None = None
    tolerance: Tolerance | None = None
    evidence: EvidenceRecord | None = None
    exact: EqualityRecord | None = None


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
    if where and decisive.verdict is Verdict.UNSTABLE:
        agreeing = sum(leaf.verdict in AGREEING for leaf in parts)
        where = f"{agreeing} of {len(parts)} outputs agree; {where}"
    return Comparison(parts, decisive.verdict, where + decisive.reason)


def format_index(index: ShapeIndex) -> str:
    """`{1,0}`, as HLO writes shape indices."""
    return "{" + ",".join(map(str, index)) + "}"


def format_position(index: tuple[int, ...]) -> str:
    """`[1,7]`, the position of an element."""
    return f"[{','.join(map(str, index))}]"
