"""The comparison of two results: what is said of each leaf and of the whole, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

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


def not_plainly_agreeing(leaf: LeafComparison) -> LeafComparison:
    """A leaf with a NaN or an infinity on one side only is no plain agreement, whatever explains it: `range`.

    That legal executions come out on either side says that a value on the way is at the end of its type, and
    that is what the user has to know.
    """
    metrics = leaf.metrics
    if leaf.verdict not in AGREEING or metrics is None:
        return leaf
    if not (metrics.nan_mismatches or metrics.inf_mismatches):
        return leaf
    said = one_sided_text(metrics.nan_mismatches, metrics.inf_mismatches)
    reason = f"{said}, as executions with other rounding have it on either side: {leaf.reason}"
    return replace(leaf, verdict=Verdict.RANGE, reason=reason)


def one_sided_text(nan: int, infinite: int) -> str:
    """`2 NaN on one side only`, `1 infinite on one side only, or with another sign`, or both.

    Args:
        nan: elements that are NaN on one side only.
        infinite: elements that are infinite on one side only, or with another sign.
    """
    parts = [f"{nan} NaN on one side only"] if nan else []
    parts += [f"{infinite} infinite on one side only, or with another sign"] if infinite else []
    return " and ".join(parts)


def format_index(index: ShapeIndex) -> str:
    """`{1,0}`, as HLO writes shape indices."""
    return "{" + ",".join(map(str, index)) + "}"


def format_position(index: tuple[int, ...]) -> str:
    """`[1,7]`, the position of an element."""
    return f"[{','.join(map(str, index))}]"
