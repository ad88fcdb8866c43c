"""What is found of two executions layer by layer, as plain data."""

from __future__ import annotations

from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import LeafRecord
from hlotool.system.records import Record, SourceRecord


class LayerRecord(Record, frozen=True, kw_only=True):
    """A value of one execution, and that of the other one which belongs to it.

    Attributes:
        left: name of the array.
        right: likewise.
        layers: whose result it is, the innermost first, as the frontend calls them.
        right_layers: likewise on the right, where a program is known.
        aligned_by: `map`, `layer` (of one name on both sides), `value`, or `order`.
        left_shape: such as `f32[4,8]`.
        right_shape: likewise.
        axes: of the right array, in the order of the left one's; empty where it was reshaped.
        verdict: IDENTICAL; ROUNDING, within the spread of legal executions; WRONG, beyond it; STRUCTURAL, of
            another shape.
        reason: in one sentence.
        difference: root mean square of the difference, relative to that of the left array; null where a value
            is not finite.
        spread: the same of the legal execution that is furthest off; where no program is known, the bound.
        ratio: how many times as far off it is as legal executions are; null where no program is known.
        comparison: of the elements, of the first few that are wrong.
        source: where the left one comes from, or else the right one.
    """

    left: str
    right: str
    layers: list[str] = []
    right_layers: list[str] = []
    aligned_by: str = "order"
    left_shape: str
    right_shape: str
    axes: list[int] = []
    verdict: Verdict
    reason: str = ""
    difference: float | None = None
    spread: float | None = None
    ratio: float | None = None
    comparison: LeafRecord | None = None
    source: SourceRecord | None = None

    @property
    def name(self) -> str:
        """What people call it: the innermost layer, or else the array on the right, which a module gave."""
        return next(iter([*self.layers, *self.right_layers]), self.right)


class LayersRecord(Record, frozen=True, kw_only=True):
    """Two executions, layer by layer.

    Attributes:
        layers: what was compared, in the order in which the left side computes it.
        first: number of the first layer that leaves legal spread; null where none does.
        basis: what is legal.
    """

    layers: list[LayerRecord] = []
    first: int | None = None
    basis: str = ""
