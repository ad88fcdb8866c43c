"""The comparison of two results: what is said of each leaf and of the whole, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlotool.findings.records import Record, SourceRecord
from hlotool.findings.verdict import Verdict
from hlotool.ir.types import ShapeIndex
from hlotool.numerics.metrics import Metrics
from hlotool.numerics.tolerance import Tolerance


class EvidenceRecord(Record, frozen=True, kw_only=True):
    """What the verdict on a leaf rests on, beyond a few ulps; equal options give equal evidence.

    Attributes:
        seed: of the ensemble of legal executions.
        members: executions in the ensemble, the reference included; 0 when none was needed.
        statistic: the decisive one: `worst element`, `whole output`, `row`, `column`, `slice`, `bias` or
            `flips`.
        ratio: the result's statistic over the largest of the legal executions, None where it is not finite.
        score: distance of the worst element from the centre of the ensemble, in spreads.
        width: spread of the ensemble relative to the values.
        wide: what both programs show when they are executed in f64: `equal`, `within` (what rounded constants
            do), `range` (one side overflows) or `outside`; empty without two programs.
        beyond: elements that no legal execution reaches.
        pattern: kind of the error, such as `constant factor` or `shift`; empty where none was recognised.
        detail: the pattern in words.
        instruction: which amplifies rounding most, or overflows.
        rule: id of the known semantic difference.
    """

    seed: int
    members: int = 0
    statistic: str = ""
    ratio: float | None = None
    score: float | None = None
    width: float | None = None
    wide: str = ""
    beyond: int = 0
    pattern: str = ""
    detail: str = ""
    instruction: SourceRecord | None = None
    rule: str = ""


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
    """

    index: ShapeIndex
    shape: str
    verdict: Verdict
    reason: str
    metrics: Metrics | None = None
    tolerance: Tolerance | None = None
    evidence: EvidenceRecord | None = None


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


def format_position(index: tuple[int, ...]) -> str:
    """`[1,7]`, the position of an element."""
    return f"[{','.join(map(str, index))}]"
