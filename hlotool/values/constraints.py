"""All demands on one parameter leaf, combined into what its values will be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hlotool.analysis.interval import ANY, Interval
from hlotool.ir.opcodes import Identity
from hlotool.ir.types import ShapeIndex
from hlotool.values.demand_flow import Finding
from hlotool.values.demands import (
    AnyBits,
    Demand,
    Exactly,
    InRange,
    Matrix,
    MatrixKind,
    Ordered,
    Scaled,
)


@dataclass(slots=True)
class Constraint:
    """How the values of a leaf are to be chosen.

    Attributes:
        intervals: one, or one per position along `axis`.
        axis: None when there is one interval.
        order: distinct or ascending elements or vectors.
        exactly: one value for all elements.
        matrix: what the last two dimensions are.
        scale: typical magnitude of floats that no interval bounds.
        all_bits: integers use their whole width.
        purposes: who asked, in program order.
        unmet: demands that contradict earlier ones, with who asked.
    """

    intervals: tuple[Interval, ...] = (ANY,)
    axis: int | None = None
    order: Ordered | None = None
    exactly: Identity | None = None
    matrix: MatrixKind | None = None
    scale: float = 1.0
    all_bits: bool = False
    purposes: list[str] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)

    @property
    def is_bounded(self) -> bool:
        """Whether some interval excludes a number."""
        return any(interval != ANY for interval in self.intervals)

    def add(self, demand: Demand, purpose: str) -> None:
        """Take in one more demand."""
        if self._merge(demand):
            self.purposes.append(purpose)
        else:
            self.unmet.append(purpose)

    def _merge(self, demand: Demand) -> bool:
        """Whether the demand can be met together with the earlier ones."""
        match demand:
            case InRange():
                return self._merge_range(demand)
            case Ordered():
                self.order = demand if self.order is None else _both(self.order, demand)
            case Exactly():
                if self.exactly not in (None, demand.value):
                    return False
                self.exactly = demand.value
            case Matrix():
                # Positive definite matrices have well-conditioned triangles, not the other way round.
                if self.matrix in (None, demand.kind) or demand.kind is MatrixKind.POSITIVE_DEFINITE:
                    self.matrix = demand.kind
                return self.matrix in (demand.kind, MatrixKind.POSITIVE_DEFINITE)
            case Scaled():
                self.scale = min(self.scale, demand.factor)
            case AnyBits():
                self.all_bits = True
        return True

    def _merge_range(self, demand: InRange) -> bool:
        axis, mine, asked = _aligned(self.axis, self.intervals, demand)
        merged = tuple(a.intersect(b) for a, b in zip(mine, asked))
        if any(interval.is_empty for interval in merged):
            return False
        self.axis, self.intervals = axis, merged
        return True


def _both(a: Ordered, b: Ordered) -> Ordered:
    return Ordered(a.distinct or b.distinct, a.ascending or b.ascending, a.axis, a.batch)


def _aligned(
    axis: int | None, mine: tuple[Interval, ...], demand: InRange
) -> tuple[int | None, Sequence[Interval], Sequence[Interval]]:
    """Both sets of intervals along one axis; two different axes collapse."""
    if axis == demand.axis and len(mine) == len(demand.intervals):
        return axis, mine, demand.intervals
    if axis is None:
        return demand.axis, mine * len(demand.intervals), demand.intervals
    if demand.axis is None:
        return axis, mine, demand.intervals * len(mine)
    return None, (InRange(mine).narrowest,), (demand.narrowest,)


def combine(findings: Iterable[Finding]) -> dict[tuple[int, ShapeIndex], Constraint]:
    """Constraints by parameter number and leaf index; requirements go before wishes, else program order."""
    constraints: dict[tuple[int, ShapeIndex], Constraint] = {}
    for finding in sorted(findings, key=_strength):
        key = (finding.number, finding.index)
        constraints.setdefault(key, Constraint()).add(finding.demand, finding.purpose)
    return constraints


def _strength(finding: Finding) -> bool:
    """False sorts first: what the program needs to be defined at all."""
    return isinstance(finding.demand, InRange) and not finding.demand.required
