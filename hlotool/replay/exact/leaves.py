"""One leaf of two results: equal or not, with a witness, or nothing is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hlotool.backends.field.black_boxes import BlackBox
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex
from hlotool.replay.devices.runners import Outcome
from hlotool.replay.exact.result import LeafResult, Relation, Witness


def compared(
    index: ShapeIndex, expected: tuple[Shape, Any], actual: tuple[Shape, Any], outcome: Outcome, seed: int
) -> LeafResult:
    """One leaf of both results."""
    (shape, value), (other_shape, other) = expected, actual
    if not isinstance(shape, ArrayShape) or not isinstance(other_shape, ArrayShape):
        return LeafResult(index, Relation.EQUAL)
    if fault := outcome.faults.get(index):
        return LeafResult(index, Relation.UNEQUAL, reason=fault)
    if shape.element_type is not other_shape.element_type or np.shape(value) != np.shape(other):
        sides = [_described(s, v) for s, v in (expected, actual)]
        return LeafResult(index, Relation.UNEQUAL, reason=f"expected {sides[0]}, got {sides[1]}")
    left, right = np.asarray(value), np.asarray(other)
    differs = np.asarray(left != right)
    count = int(np.count_nonzero(differs))
    if not count:
        return LeafResult(index, Relation.EQUAL, 0, left.size)
    at = tuple(int(i) for i in np.unravel_index(int(differs.argmax()), differs.shape))
    witness = Witness(seed, at, _text(shape, left[at]), _text(shape, right[at]))
    return LeafResult(index, Relation.UNEQUAL, count, left.size, witness)


def _text(shape: ArrayShape, value: Any) -> str:
    """One element of a result (see `held.residues`) in words."""
    if shape.element_type.is_complex:
        return f"({int(value) >> 32}, {int(value) & 0xFFFFFFFF}) mod P"
    return f"{value} mod P" if shape.element_type.is_floating else str(value)


def _described(shape: Shape, value: Any) -> str:
    assert isinstance(shape, ArrayShape)
    return ArrayShape(shape.element_type, np.shape(value)).logical_text()


def worst(leaf: Sequence[LeafResult]) -> LeafResult:
    """Of one leaf the trial with the most elements that differ."""
    return max(leaf, key=lambda one: (one.relation is Relation.UNEQUAL, one.differing))


def explained(
    leaves: Sequence[LeafResult], reference: Sequence[BlackBox], tested: Sequence[BlackBox]
) -> list[LeafResult]:
    """Nothing follows from leaves that differ where only one program calls an unknown function.

    An erf in place of an atan2 is a difference, an erf in place of arithmetic may be none.
    """
    alone = _alone(reference, tested), _alone(tested, reference)
    boxes = [box for side in alone for box in side if not box.is_function or not all(alone)]
    if not boxes:
        return list(leaves)
    where = f" (line {boxes[0].line})" if boxes[0].line else ""
    reason = f"an unknown function of one program only: {boxes[0].name} of %{boxes[0].instruction}{where}"
    return [
        replace(leaf, relation=Relation.REFUSED, reason=reason)
        if leaf.relation is Relation.UNEQUAL and leaf.witness is not None
        else leaf
        for leaf in leaves
    ]


def _alone(boxes: Sequence[BlackBox], others: Sequence[BlackBox]) -> list[BlackBox]:
    names = {box.name for box in others}
    return [box for box in boxes if box.name not in names]
