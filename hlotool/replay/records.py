"""What the replay of a module found, as plain data: sent by workers, kept in journals, printed as JSON.

Numbers that JSON cannot hold (NaN, infinities, complex values) appear as text, in fields that say so.
"""

from __future__ import annotations

from hlotool.findings.comparison import BucketRecord, EqualityRecord, EvidenceRecord, MinimumToleranceRecord
from hlotool.findings.records import ErrorRecord, Record, SourceRecord
from hlotool.findings.signature import Signature
from hlotool.findings.verdict import Answer, Verdict
from hlotool.locate.records import DivergenceRecord, ElementRecord

#: In place of a tested stage: what the real program returned.
REALITY = "result"


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


class LeafRecord(Record, frozen=True, kw_only=True):
    """One array of the result, compared.

    Attributes:
        index: its shape index in the result; empty when the result is one array.
        shape: such as `f32[4,8]`.
        verdict: IDENTICAL, AGREE, ROUNDING, NOT_COMPARABLE, DIFFERS, UNSTABLE, RANGE, SEMANTICS, UNEQUAL,
            WRONG or STRUCTURAL.
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
        exact: what the programs are as functions of real numbers; None where that was not asked.
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
    exact: EqualityRecord | None = None
    source: SourceRecord | None = None
    expected_file: str = ""
    actual_file: str = ""

    @property
    def fault(self) -> str:
        """What is wrong about a leaf that does not agree, as signatures say it."""
        if self.verdict is Verdict.STRUCTURAL:
            return "shape"
        if self.verdict is Verdict.UNEQUAL:
            return "function"
        return "NaN" if self.nan_mismatches else "infinity" if self.inf_mismatches else "value"


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
        unexplained: wrong outputs whose errors were not looked at for a pattern: of many only the worst few
            are, unless `--thorough` asks for all.
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
    unexplained: int = 0
    divergence: DivergenceRecord | None = None
    divergence_missing: str = ""
    error: ErrorRecord | None = None
    notes: list[str] = []
    seconds: float = 0.0

    @property
    def signature(self) -> Signature:
        """How the module fails; of a module that does not, only its verdict."""
        wrong = [leaf for leaf in self.leaves if leaf.verdict.answer is Answer.BAD]
        sources = [leaf.source for leaf in wrong if leaf.source]
        lines = (f"{source.file}:{source.file_line}" for source in sources if source.file)
        return Signature(
            kind=self.verdict.value,
            elements=tuple(dict.fromkeys(leaf.fault for leaf in wrong)),
            opcodes=tuple(dict.fromkeys(source.opcode for source in sources)),
            outputs=tuple(tuple(leaf.index) for leaf in wrong),
            sources=tuple(dict.fromkeys(lines)),
        )
