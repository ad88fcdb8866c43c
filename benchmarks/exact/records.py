"""What the benchmark of the exact arbiter remembers: one line of JSON per pair."""

from __future__ import annotations

import enum

import msgspec

from benchmarks.common.units import UnitDone
from hlotool.runs.exact.result import ExactResult, Relation


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was found of a pair.

    Attributes:
        relation: of the whole: `equal`, `unequal` or `refused`.
        reason: why nothing is known, or what differs if not the values.
        unequal: leaves that differ.
        leaves: of the result.
        laws: that were assumed.
        seconds: that it took.
    """

    relation: str
    reason: str = ""
    unequal: list[list[int]] = []
    leaves: int = 0
    laws: list[str] = []
    seconds: float = 0.0

    @staticmethod
    def of(result: ExactResult) -> Proof:
        """From a comparison."""
        reasons = [leaf.reason for leaf in result.leaves if leaf.reason]
        return Proof(
            result.relation.value,
            result.refused or result.structural or (reasons[0] if reasons else ""),
            [list(leaf.index) for leaf in result.leaves if leaf.relation is Relation.UNEQUAL],
            len(result.leaves),
            list(result.laws),
            result.seconds,
        )


class LegalRecord(msgspec.Struct, frozen=True, tag="legal"):
    """A program and what a compiler made of it; `proof` is None where there is no such program."""

    unit: str
    group: str
    way: str
    detail: str
    proof: Proof | None
    reason: str = ""


class Unseen(enum.Enum):
    """What two programs that are called equal differ by, on the numbers that show a fault."""

    #: In f64 they return the same.
    ROUNDING = "rounding"
    #: In f64 they return the same wherever both return numbers, or on arguments without NaN and infinity.
    SPECIALS = "NaN, infinity"
    #: They return the same on arguments whose indices are in range, as all points have them.
    INDICES = "indices out of range"
    #: In f64 they differ, or nothing is known.
    OTHER = "other"


class FaultRecord(msgspec.Struct, frozen=True, tag="fault"):
    """A fault that was planted.

    Attributes:
        unit: kind of fault.
        program: that it is in.
        stage: `before` or `after` optimisation.
        site: where.
        seed: that it was planted with.
        is_small: it is one of those that are meant to be below rounding.
        ratio: largest change of an output over its legal spread; None where that is not known.
        verdict: of the statistical judge.
        proof: of the arbiter.
        unseen: of a fault of the catalogue that is called equal: what shows it.
    """

    unit: str
    program: str
    stage: str
    site: str
    seed: int
    is_small: bool
    ratio: float | None
    verdict: str
    proof: Proof
    unseen: Unseen | None = None


Record = LegalRecord | FaultRecord | UnitDone

DECODER = msgspec.json.Decoder(Record)
