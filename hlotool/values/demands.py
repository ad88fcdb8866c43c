"""What an instruction asks of a value so that the program makes sense.

A demand starts at the instruction that needs it (`sources`), travels backwards through the instructions that
make the value (`trace`), and ends at entry parameters, whose values are chosen to meet it (`generators`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from hlotool.analysis.interval import Interval
from hlotool.ir.opcodes import Identity


@dataclass(frozen=True, slots=True)
class InRange:
    """Numbers must lie in an interval.

    Attributes:
        intervals: one for all elements, or one per position along `axis`.
        axis: None when there is one interval.
        required: False for indices, which XLA clamps or skips: values out of range are legal, but useless.
    """

    intervals: tuple[Interval, ...]
    axis: int | None = None
    required: bool = True

    @property
    def narrowest(self) -> Interval:
        """The numbers that are allowed at every position: the intersection of all intervals."""
        result = self.intervals[0]
        for interval in self.intervals[1:]:
            result = result.intersect(interval)
        return result


@dataclass(frozen=True, slots=True)
class Ordered:
    """Elements (or vectors along `axis`) must be distinct, or in ascending order, or both.

    Attributes:
        distinct: no two alike.
        ascending: sorted in row-major order; vectors lexicographically.
        axis: that of the vectors, or None when elements are compared.
        batch: dimensions whose positions are separate groups.
    """

    distinct: bool
    ascending: bool
    axis: int | None = None
    batch: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Exactly:
    """Every element must be one value."""

    value: Identity


class MatrixKind(enum.Enum):
    """What a linear solver needs of its matrix."""

    POSITIVE_DEFINITE = "symmetric positive definite"
    LOWER = "well-conditioned lower triangle"
    UPPER = "well-conditioned upper triangle"

    @property
    def transposed(self) -> MatrixKind:
        """The kind of the transposed matrix."""
        pairs = {MatrixKind.LOWER: MatrixKind.UPPER, MatrixKind.UPPER: MatrixKind.LOWER}
        return pairs.get(self, self)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The last two dimensions must be matrices of a kind."""

    kind: MatrixKind


@dataclass(frozen=True, slots=True)
class Scaled:
    """Floats should be about this large, so that sums of products stay near 1."""

    factor: float


@dataclass(frozen=True, slots=True)
class AnyBits:
    """Integers should use their whole width: the state of a random number generator."""


Demand: TypeAlias = InRange | Ordered | Exactly | Matrix | Scaled | AnyBits
