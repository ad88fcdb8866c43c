"""Parts of a comparison as plain data: who only reads or shows them needs no numerics."""

from __future__ import annotations

from hlotool.findings.records import Record, SourceRecord


class BucketRecord(Record, frozen=True, kw_only=True):
    """Elements whose actual value has a magnitude in (low, high]; zeros are the bucket (0, 0].

    Attributes:
        low: exclusive lower end.
        high: inclusive upper end, None for infinity.
        total: elements in the range.
        mismatched: those of them outside the tolerance.
        worst_absolute: largest absolute error of those, infinities and NaNs left out.
    """

    low: float
    high: float | None
    total: int
    mismatched: int
    worst_absolute: float = 0.0


class HeatMapRecord(Record, frozen=True, kw_only=True):
    """Where in its last two dimensions an array differs.

    Attributes:
        rows: size of the dimension that runs down.
        columns: of the one that runs right.
        cells: rows of cells, each the largest absolute error of the elements that it covers, over all other
            dimensions; None where one of them is not finite on one side only.
    """

    rows: int
    columns: int
    cells: list[list[float | None]]


class MinimumToleranceRecord(Record, frozen=True, kw_only=True):
    """The smallest tolerances under which the leaf would have passed; None where none is enough.

    Attributes:
        absolute: alone, with relative 0.
        relative: alone, with absolute 0.
        joint: the same number for both.
    """

    absolute: float | None
    relative: float | None
    joint: float | None


class FreedomsRecord(Record, frozen=True, kw_only=True):
    """What the target of a program may do that HLO does not say, beyond sums in any order and contraction.

    Attributes:
        target: what the program was compiled for: `cpu`, `gpu`, `tpu`, or empty where nothing tells.
        told_by: what tells that.
        products: what products of f32 may be computed in, in words; empty for f32.
        excess_precision: a rounding to a narrow type may be left out.
        flags: of the dump's debug options, which allow more: `NAME=VALUE`.
    """

    target: str = ""
    told_by: str = ""
    products: str = ""
    excess_precision: bool = True
    flags: list[str] = []


class EvidenceRecord(Record, frozen=True, kw_only=True):
    """What the verdict on a leaf rests on, beyond a few ulps; equal options give equal evidence.

    Attributes:
        seed: of the ensemble of legal executions.
        members: executions in the ensemble, the reference included; 0 when none was needed. Where `wide` is
            `outside` they are those in f64, as are the statistics.
        statistic: the decisive one: `worst element`, `whole output`, `row`, `column`, `slice`, `bias` or
            `flips`.
        ratio: the result's statistic over the largest of the legal executions, None where it is not finite.
        score: distance of the worst element from the centre of the ensemble, in spreads.
        width: spread of the ensemble relative to the values.
        wide: what both programs show when they are executed in f64: `equal`, `within` (what rounded constants
            do), `range` (one side overflows) or `outside`; empty without two programs.
        beyond: elements that no legal execution reaches.
        cancelled: elements that rounding alone decides about, because the terms of a sum cancel.
        pattern: kind of the error, such as `constant factor` or `shift`; empty where none was recognised.
        detail: the pattern in words.
        instruction: which amplifies rounding most, or overflows, or whose terms cancel.
        rule: id of the known semantic difference.
        explained: False where no pattern was looked for: of many wrong outputs only the worst few are.
    """

    seed: int
    members: int = 0
    statistic: str = ""
    ratio: float | None = None
    score: float | None = None
    width: float | None = None
    wide: str = ""
    beyond: int = 0
    cancelled: int = 0
    pattern: str = ""
    detail: str = ""
    instruction: SourceRecord | None = None
    rule: str = ""
    explained: bool = True


class EqualityRecord(Record, frozen=True, kw_only=True):
    """An output of two programs as functions of real numbers, as `hlotool prove` compares them.

    Attributes:
        relation: `equal`, `equal where` (on all that was covered: some decision never went one of its ways),
            `unequal`, or `refused` where nothing is known.
        trials: random points at which both were evaluated.
        differing: elements that differ at one of them, at most.
        total: elements.
        reason: why nothing is known, or what was not covered.
        around: binary logarithm of the sizes that numbers have at the points that show a difference, up to a
            factor of 2^8.
        seed: of the point that shows a difference, where numbers have sizes of their own there.
        apart: relative difference in f64 on the inputs at hand that no rounding of constants explains.
    """

    relation: str
    trials: int = 0
    differing: int = 0
    total: int = 0
    reason: str = ""
    around: float = 0.0
    seed: int | None = None
    apart: float = 0.0
