"""What the replay of a module found, as plain data: sent by workers, kept in journals, printed as JSON.

Numbers that JSON cannot hold (NaN, infinities, complex values) appear as text, in fields that say so.
"""

from __future__ import annotations

import enum

import msgspec


class Verdict(enum.Enum):
    """What is said of a leaf or of a module, from best to worst; compare `hlotool.numerics.verdict`."""

    #: Every bit is the same.
    IDENTICAL = "identical"
    #: Differs by no more than a few ulps, or than a tolerance.
    AGREE = "agree"
    #: Differs by what legal executions of the program differ by.
    ROUNDING = "rounding"
    #: It ran, but there was nothing to compare it with.
    NOT_COMPARED = "not compared"
    #: Compared by value it would mean nothing: random numbers, unknown custom calls.
    NOT_COMPARABLE = "not comparable"
    #: Legal executions of the program differ so much that nothing can be said.
    UNSTABLE = "unstable"
    #: One side overflows, or makes a NaN, where the other one takes a way round.
    RANGE = "range"
    #: Explained by a known difference between XLA's implementations.
    SEMANTICS = "semantics"
    #: Correct HLO that the backend cannot execute.
    UNSUPPORTED = "unsupported"
    #: No HLO, broken HLO, or inputs that do not fit.
    BAD_INPUT = "bad input"
    #: The process died, or an unexpected exception ended it.
    CRASHED = "crashed"
    #: No answer within the time limit.
    TIMEOUT = "timeout"
    #: More memory than the limit, or than there is.
    OUT_OF_MEMORY = "out of memory"
    #: No legal execution returns this, or it is outside of tolerances that the user set.
    WRONG = "wrong"
    #: Element types, dimensions or tuple structure differ.
    STRUCTURAL = "structural"

    @property
    def rank(self) -> int:
        """0 for the best."""
        return _RANKS[self]


_RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}

#: In place of a tested stage: what the real program returned.
REALITY = "result"

#: The two sides were compared and agree.
AGREEING = frozenset({Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING})
#: The two sides were compared and one of them is wrong.
DIFFERING = frozenset({Verdict.WRONG, Verdict.STRUCTURAL})
#: The two sides were compared and differ, and no compiler is to blame.
EXCUSED = frozenset({Verdict.UNSTABLE, Verdict.RANGE, Verdict.SEMANTICS})
#: A backend died.
FAILED = frozenset({Verdict.CRASHED, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY})


class Record(msgspec.Struct, frozen=True):
    """Base of all records."""


class SourceRecord(Record, frozen=True, kw_only=True):
    """Where an instruction comes from.

    Attributes:
        instruction: its HLO name.
        opcode: its opcode.
        line: in the HLO text, 0 when unknown.
        op_name: the frontend's name path, such as `jit(step)/dot_general`.
        file: of the user's program, empty when the dump does not tell.
        file_line: line in `file`.
        function: of the user's program.
    """

    instruction: str
    opcode: str
    line: int = 0
    op_name: str = ""
    file: str = ""
    file_line: int = 0
    function: str = ""


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


class BucketRecord(Record, frozen=True, kw_only=True):
    """Elements whose actual value has a magnitude in (low, high]; zeros are the bucket (0, 0].

    Attributes:
        low: exclusive lower end.
        high: inclusive upper end, None for infinity.
        total: elements in the range.
        mismatched: those of them outside the tolerance.
    """

    low: float
    high: float | None
    total: int
    mismatched: int


class ToleranceRecord(Record, frozen=True, kw_only=True):
    """What is accepted: |expected - actual| <= absolute + relative * the larger magnitude.

    Attributes:
        relative: factor of the larger magnitude.
        absolute: added to it.
        origin: where the two come from, in words.
    """

    relative: float
    absolute: float
    origin: str = ""


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


class EvidenceRecord(Record, frozen=True, kw_only=True):
    """What the verdict on a leaf rests on, beyond a few ulps; equal options give equal evidence.

    Attributes:
        seed: of the ensemble of legal executions.
        members: executions in the ensemble, the reference included; 0 when none was needed.
        statistic: the decisive one: `worst element`, `whole output`, `row`, `column`, `slice`, `bias` or
            `flips`.
        ratio: the result's statistic over the largest of the legal executions, None where it is not finite.
        score: distance of the worst element from the centre of the ensemble, in spreads.
        width: spread of the ensemble relative to the values.
        wide: what both programs show when they are executed in f64: `equal`, `within` (what rounded constants
            do), `range` (one side overflows) or `outside`; empty without two programs.
        beyond: elements that no legal execution reaches.
        pattern: kind of the error, such as `constant factor` or `shift`; empty where none was recognised.
        detail: the pattern in words.
        instruction: of an unstable program: where the spread of its executions grows most.
        rule: id of the known semantic difference.
    """

    seed: int
    members: int = 0
    statistic: str = ""
    ratio: float | None = None
    score: float | None = None
    width: float | None = None
    wide: str = ""
    beyond: int = 0
    pattern: str = ""
    detail: str = ""
    instruction: SourceRecord | None = None
    rule: str = ""


class LeafRecord(Record, frozen=True, kw_only=True):
    """One array of the result, compared.

    Attributes:
        index: its shape index in the result; empty when the result is one array.
        shape: such as `f32[4,8]`.
        verdict: IDENTICAL, AGREE, ROUNDING, NOT_COMPARABLE, UNSTABLE, RANGE, SEMANTICS, WRONG or STRUCTURAL.
        reason: the verdict in one clause.
        total: number of elements.
        mismatched: elements outside the tolerance, those of the next two counts included.
        nan_mismatches: elements that are NaN on one side only.
        inf_mismatches: elements that are infinite on one side only, or with another sign.
        max_ulp: largest distance in ulps of finite pairs, None for types without ulps.
        worst_absolute: the element with the largest absolute error.
        worst_relative: the element with the largest relative error.
        top: up to five mismatched elements, the worst first.
        histogram: mismatches by magnitude.
        tolerance: what was accepted.
        minimum_tolerance: what would have been enough.
        decision: of a differing integer or pred: the instruction that makes it of floats, where one ulp may
            flip it.
        evidence: what the verdict rests on; None where equality or a tolerance decides.
        source: of a leaf that does not agree: the instruction that makes it.
        expected_file: where `--save-outputs` put the reference's value.
        actual_file: where it put the tested value.
    """

    index: list[int]
    shape: str
    verdict: Verdict
    reason: str = ""
    total: int = 0
    mismatched: int = 0
    nan_mismatches: int = 0
    inf_mismatches: int = 0
    max_ulp: int | None = None
    worst_absolute: ElementRecord | None = None
    worst_relative: ElementRecord | None = None
    top: list[ElementRecord] = []
    histogram: list[BucketRecord] = []
    tolerance: ToleranceRecord | None = None
    minimum_tolerance: MinimumToleranceRecord | None = None
    decision: str = ""
    evidence: EvidenceRecord | None = None
    source: SourceRecord | None = None
    expected_file: str = ""
    actual_file: str = ""


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
        index: the first such element; None when it is not known.
        operands: what it was made of.
    """

    kind: str
    source: SourceRecord
    text: str
    around: list[str] = []
    index: list[int] | None = None
    operands: list[OperandRecord] = []


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


class OutputRecord(Record, frozen=True, kw_only=True):
    """One array of the result of a program that ran alone.

    Attributes:
        index: its shape index in the result.
        shape: such as `f32[4,8]`.
        total: number of elements.
        minimum: smallest finite value, None when there is none or the type is complex.
        mean: of the finite values.
        maximum: largest finite value.
        nan: number of NaNs.
        inf: number of infinities.
        first: the first values, as text.
        file: where `--save-outputs` put it.
    """

    index: list[int]
    shape: str
    total: int
    minimum: float | None = None
    mean: float | None = None
    maximum: float | None = None
    nan: int = 0
    inf: int = 0
    first: list[str] = []
    file: str = ""


class InputsRecord(Record, frozen=True, kw_only=True):
    """What the program was run on.

    Attributes:
        origin: `generated`, `captured` (a snapshot of the dump) or `given` (`--inputs`).
        description: in words.
        seed: of generated inputs.
        rules: what was assumed of parameters that generated inputs had to suit.
    """

    origin: str
    description: str
    seed: int | None = None
    rules: list[str] = []


class ErrorRecord(Record, frozen=True, kw_only=True):
    """Why a module (or the whole command) came to nothing.

    Attributes:
        kind: name of the error class in `hlotool.errors`.
        message: one line.
        instruction: the instruction's name, if one is to blame.
        path: file of the position below.
        line: 0 when unknown.
        column: 0 when unknown.
        log: last lines that the dead process wrote, or the text around a syntax error.
    """

    kind: str
    message: str
    instruction: str | None = None
    path: str | None = None
    line: int = 0
    column: int = 0
    log: str = ""


class ModuleRecord(Record, frozen=True, kw_only=True):
    """One comparison (or one lonely run) of one module.

    Attributes:
        path: file that was tested.
        name: of the module within its dump.
        stage_reference: stage that gave the expected values.
        stage_tested: stage whose values were judged, or `result`: what the real program returned.
        reference: backend and version that ran the reference.
        tested: backend and version that ran the tested stage, or where the real result comes from.
        verdict: the worst of the leaves, or why there is none.
        reason: the verdict in one line.
        inputs: what both sides ran on.
        leaves: comparisons, in tuple order.
        outputs: summaries, when there was nothing to compare with.
        divergence: where a differing program parts from the reference, when it was looked for and found.
        divergence_missing: why it was not looked for, or not found.
        error: why it came to nothing.
        notes: how the values of several devices became one result.
        seconds: wall time.
    """

    path: str
    name: str
    verdict: Verdict
    stage_reference: str | None = None
    stage_tested: str | None = None
    reference: str | None = None
    tested: str | None = None
    reason: str = ""
    inputs: InputsRecord | None = None
    leaves: list[LeafRecord] = []
    outputs: list[OutputRecord] = []
    divergence: DivergenceRecord | None = None
    divergence_missing: str = ""
    error: ErrorRecord | None = None
    notes: list[str] = []
    seconds: float = 0.0
