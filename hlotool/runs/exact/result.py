"""What is known of two programs as functions of real numbers: each leaf equal, unequal or unknown."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hlotool.backends.field.unknown import BlackBox
from hlotool.backends.field.words import P
from hlotool.facts import thresholds
from hlotool.ir.types import ArrayShape, Shape, ShapeIndex
from hlotool.runs.exact.points import Meeting
from hlotool.runs.exact.sides import OneSided
from hlotool.runs.runners import Outcome


class Relation(enum.Enum):
    """How two results are related."""

    #: The same function, up to a probability.
    EQUAL = "equal"
    #: The same on what was covered: some decision never went one of its ways, and there they may differ.
    EQUAL_WHERE = "equal where"
    #: Different functions: there is a witness.
    UNEQUAL = "unequal"
    #: Nothing is known, for a stated reason.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Witness:
    """An element that shows two programs to be different functions.

    Attributes:
        seed: of the trial, from which the arguments follow.
        index: of the element.
        expected: its value in the reference, in words: an integer or pred, or what floats are modulo P.
        actual: in the tested program.
    """

    seed: int
    index: tuple[int, ...]
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class LeafResult:
    """One leaf of the result.

    Attributes:
        index: of the leaf.
        relation: of both sides.
        differing: elements that differ, in the trial with the most of them.
        total: elements.
        witness: the first that differs, if any does.
        reason: why nothing is known, or what differs if not the values.
        apart: relative difference on the first arguments in f64 that no rounding of constants explains; 0
            where that was not looked for.
    """

    index: ShapeIndex
    relation: Relation
    differing: int = 0
    total: int = 0
    witness: Witness | None = None
    reason: str = ""
    apart: float = 0.0


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Two programs compared.

    Attributes:
        leaves: of the result; none where the programs could not be evaluated.
        refused: why they could not; empty otherwise.
        structural: what differs of their parameters or of the structure of their results; empty otherwise.
        trials: points at which both were evaluated.
        laws: what had to be assumed beyond the laws of the field, in words.
        constants: how constants were read where not as what they are, as (constant, number, why).
        boxes: unknown functions of the reference, and of the tested program.
        one_sided: decisions of either program that never went one of their ways, those that were not asked at
            all among them.
        counts_integers: integers were sampled widely enough for their decisions to count.
        decides_by_floats: in one of the programs something depends on the order of floats.
        around: of the point that shows them to be unequal, see `Options`.
        meeting: likewise.
        seconds: that it took.
    """

    leaves: Sequence[LeafResult] = ()
    refused: str = ""
    structural: str = ""
    trials: int = 0
    laws: Sequence[str] = ()
    constants: Sequence[tuple[str, str, str]] = ()
    boxes: tuple[Sequence[BlackBox], Sequence[BlackBox]] = field(default=((), ()))
    one_sided: Sequence[OneSided] = ()
    counts_integers: bool = False
    decides_by_floats: bool = False
    around: float = 0.0
    meeting: Meeting | None = None
    seconds: float = 0.0

    @property
    def relation(self) -> Relation:
        """Of the whole: equal if every leaf is, everywhere; unequal if one is."""
        found = {leaf.relation for leaf in self.leaves}
        if self.structural or Relation.UNEQUAL in found:
            return Relation.UNEQUAL
        if self.refused or Relation.REFUSED in found:
            return Relation.REFUSED
        return Relation.EQUAL_WHERE if self.not_covered else Relation.EQUAL

    @property
    def not_covered(self) -> Sequence[OneSided]:
        """The one-sided decisions on whose other sides equal programs may differ.

        A decision that was not asked stands behind another one that is one-sided.
        """
        return [s for s in self.one_sided if s.was_asked and (s.of_sizes or self.counts_integers)]

    @property
    def is_equal(self) -> bool:
        """Whether every leaf is equal at all points, whatever they cover."""
        return self.relation in (Relation.EQUAL, Relation.EQUAL_WHERE)

    @property
    def degree(self) -> int:
        """For which `error_probability` speaks: of the numerator of the difference of both sides."""
        return int(thresholds.EXACT_DEGREE.value)

    @property
    def error_probability(self) -> float:
        """That one element of an equal leaf is another rational function all the same.

        A polynomial of degree d in any number of variables is 0 at a random point of a field of P elements
        with a probability of at most d / P (Schwartz and Zippel).
        """
        return float((self.degree / P) ** self.trials)


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
