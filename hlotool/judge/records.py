"""Comparisons and divergences as plain data, and what outputs are called: `out`, `out[1][0]`.

Code that only reads or shows a comparison, or the place where a program parts from what it should be, imports
this and no numerics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlotool.ir.types import ShapeIndex
from hlotool.system.records import Record, SourceRecord


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
        happened: what made the difference, where it has a name: `excess precision: …`, `cancellation: …`.
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
    happened: str = ""
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


_OUTPUT = re.compile(r"out(\[\d+\])*")


def output_name(index: Sequence[int]) -> str:
    """`out` for a result that is one array, `out[1][0]` for a part of a tuple."""
    return "out" + "".join(f"[{i}]" for i in index)


def output_index(name: str) -> ShapeIndex:
    """The shape index of an output as reports name it: `out`, `out[1][0]`.

    Raises:
        ValueError: it is no such name.
    """
    if not _OUTPUT.fullmatch(name):
        raise ValueError(f"{name!r} is no output; they are called out, out[1], out[1][0]")
    return tuple(map(int, re.findall(r"\d+", name)))


class ElementRecord(Record, frozen=True, kw_only=True):
    """One element of both sides.

    Attributes:
        index: in the array.
        expected: value of the reference, as text.
        actual: value of the tested side, as text.
        absolute: |expected - actual|; None where it is not finite.
        relative: that over the larger of the two magnitudes; None likewise.
        ulps: representable values between the two; None for types without ulps and where it is not finite.
    """

    index: list[int]
    expected: str
    actual: str
    absolute: float | None = None
    relative: float | None = None
    ulps: int | None = None


class DeviationRecord(Record, frozen=True, kw_only=True):
    """How far one value of a program is from what it should be.

    Attributes:
        total: number of elements.
        mismatched: elements that the rounding of one operation does not explain.
        absolute: largest absolute error of finite elements.
        ulps: largest distance in ulps; None for types without ulps.
        worst: the element that is farthest off.
    """

    total: int
    mismatched: int
    absolute: float | None = None
    ulps: int | None = None
    worst: ElementRecord | None = None


class OperandRecord(Record, frozen=True, kw_only=True):
    """What an instruction reads.

    Attributes:
        instruction: its HLO name.
        shape: such as `f32[4,8]`.
        state: `agrees`, `differs` or `unknown`, compared with what the reference has there.
        value: where a NaN or an infinity is made: the operand's element that it is made of, or a range.
    """

    instruction: str
    shape: str
    state: str = ""
    value: str = ""


class NonFiniteRecord(Record, frozen=True, kw_only=True):
    """The instruction that made the first NaN or infinity on the way to a result.

    Attributes:
        kind: `NaN` or `infinity`.
        source: the instruction.
        text: the instruction as HLO.
        around: the calls around it, innermost first, with the iteration of each loop.
        device: the first device that has it; None where all have it, and in a program for one.
        index: the first such element, on that device; None when it is not known.
        operands: what it was made of.
    """

    kind: str
    source: SourceRecord
    text: str
    around: list[str] = []
    device: int | None = None
    index: list[int] | None = None
    operands: list[OperandRecord] = []


class NeighbourRecord(Record, frozen=True, kw_only=True):
    """An instruction on the way to, or from, one that is accused.

    Attributes:
        instruction: its HLO name.
        opcode: its opcode.
        text: the instruction as HLO.
        operands: names of the neighbours that it reads.
        distance: operations between its result and the accused one; 0 for that itself, -1 for what reads it.
        state: `agrees`, `differs` or `unknown`, compared with what the reference has there; empty where that
            was not asked.
    """

    instruction: str
    opcode: str
    text: str
    operands: list[str] = []
    distance: int = 0
    state: str = ""


class DivergenceRecord(Record, frozen=True, kw_only=True):
    """The first instruction at which the tested program parts from the reference.

    Attributes:
        finding: `wrong` (it computes something else than the reference), `amplifies` (it does what it should;
            differences of its operands grow there), `varies` (from run to run, as legal executions may) or
            `suspected` (the first that is known to differ).
        source: the instruction in the tested program.
        text: the instruction as HLO.
        expected_source: what stands for it in the reference.
        expected_text: that as HLO.
        around: the calls around it, innermost first, with the iteration of each loop.
        inside: of a reduction and the like: what was changed in its scalar computation, as HLO.
        inside_expected: that of the reference.
        operands: what it reads.
        accumulated: its value in the tested execution against the expected one.
        local: its value computed from the expected operands against the expected one; None where that cannot
            be computed.
        repair: what was put in its place to try, such as `the expected value`; empty where nothing helped.
        repaired: how many differing outputs became right by that.
        outputs: how many outputs differ.
        unaligned: instructions between it and the values that agree that the reference has no counterpart of.
        not_finite: what made the NaNs and infinities of the differing outputs.
        notes: what was not looked at.
        instructions: all that is to blame in the tested program, operands first; `source` is one of them.
        device: the first device on which the value is wrong; None in a program for one device.
        neighbours: what stands around it in the tested program, nearest first.
        expected_neighbours: what stands around what stands for it in the reference.
        doubt: of runs that differ, the probability that a step of the search was chance, at most; else None.
    """

    finding: str
    source: SourceRecord
    text: str
    expected_source: SourceRecord
    expected_text: str
    around: list[str] = []
    inside: str = ""
    inside_expected: str = ""
    operands: list[OperandRecord] = []
    accumulated: DeviationRecord | None = None
    local: DeviationRecord | None = None
    repair: str = ""
    repaired: int = 0
    outputs: int = 0
    unaligned: list[str] = []
    not_finite: list[NonFiniteRecord] = []
    notes: list[str] = []
    instructions: list[str] = []
    device: int | None = None
    neighbours: list[NeighbourRecord] = []
    expected_neighbours: list[NeighbourRecord] = []
    doubt: float | None = None
