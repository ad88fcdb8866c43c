"""Where a program parts from what it should be, as plain data."""

from __future__ import annotations

from hlotool.findings.records import Record, SourceRecord


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
            differences of its operands grow there) or `suspected` (the first that is known to differ).
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
