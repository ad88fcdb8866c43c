"""What is known of two programs as functions of real numbers."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from hlotool.backends.field.black_boxes import BlackBox
from hlotool.backends.field.residues import P
from hlotool.ir.types import ShapeIndex
from hlotool.numerics import thresholds
from hlotool.replay.exact.arguments import Meeting
from hlotool.replay.exact.sides import OneSided


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
            where nobody looked.
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
