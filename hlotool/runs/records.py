"""What the replay of a module found, as plain data: sent by workers, kept in journals, printed as JSON.

Numbers that JSON cannot hold (NaN, infinities, complex values) appear as text, in fields that say so.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hlotool.inputs.coverage.records import CoverageRecord
from hlotool.judge.failures import Signature
from hlotool.judge.records import (
    BucketRecord,
    DivergenceRecord,
    ElementRecord,
    EqualityRecord,
    EvidenceRecord,
    FreedomsRecord,
    HeatMapRecord,
    MinimumToleranceRecord,
    NonFiniteRecord,
)
from hlotool.judge.verdicts import Answer, Verdict
from hlotool.rewrite.scale.records import InPlaceRecord, ScaleRecord
from hlotool.runs.fp8_records import Fp8Record
from hlotool.system.records import ErrorRecord, Record, SourceRecord

#: In place of a tested stage: what the real program returned.
REALITY = "result"
#: `InputsRecord.origin` of inputs that were made from a seed, and of those of an execution.
GENERATED, CAPTURED = "generated", "captured"
#: Why an execution may have no result, and what to do about it.
NO_RESULT = (
    "XLA saves none where arguments are donated (donate_argnums) and gone when it looks at them again; code"
    " generation is not judged: run once without the donation, or add --test xla"
)


class ToleranceRecord(Record, frozen=True, kw_only=True):
    """What is accepted: |expected - actual| <= absolute + relative * the larger magnitude.

    Attributes:
        relative: factor of the larger magnitude.
        absolute: added to it.
        origin: where the two come from, in words.
        either: instead of their sum one of the two is enough, `relative` being a factor of what is expected.
    """

    relative: float
    absolute: float
    origin: str = ""
    either: bool = False


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
        heat: where a wrong leaf differs, if it has two dimensions.
        minimum_tolerance: what would have been enough.
        decision: of a differing integer or pred: the instruction that makes it of floats, where one ulp may
            flip it.
        evidence: what the verdict rests on; None where equality or a tolerance decides.
        exact: what the programs are as functions of real numbers; None where that was not asked.
        source: of a leaf that does not agree, or that a device returned: the instruction that makes it.
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
    heat: HeatMapRecord | None = None
    minimum_tolerance: MinimumToleranceRecord | None = None
    decision: str = ""
    evidence: EvidenceRecord | None = None
    exact: EqualityRecord | None = None
    source: SourceRecord | None = None
    expected_file: str = ""
    actual_file: str = ""

    @property
    def is_unequal(self) -> bool:
        """Whether it is known to be another function of real numbers."""
        return self.exact is not None and self.exact.relation == "unequal"

    @property
    def fault(self) -> str:
        """What is wrong about a leaf that does not agree, as signatures say it."""
        if self.verdict is Verdict.STRUCTURAL:
            return "shape"
        if self.verdict is Verdict.UNEQUAL:
            return "integers" if self.shape.startswith(("s", "u", "pred")) else "function"
        return "NaN" if self.nan_mismatches else "infinity" if self.inf_mismatches else "value"


class RepeatRecord(Record, frozen=True, kw_only=True):
    """What several runs of one program on the same arguments came to.

    Attributes:
        runs: how many there were.
        results: how many different ones they gave, by their bits.
        usual: runs that gave the most frequent one.
        judged: runs whose result could be judged; of very many results the most frequent ones are.
        wrong: runs among these whose result no legal execution gives.
        outputs: names of those that differ from run to run.
    """

    runs: int
    results: int
    usual: int = 0
    judged: int
    wrong: int
    outputs: list[str] = []


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


class SetRecord(Record, frozen=True, kw_only=True):
    """One further set of inputs.

    Attributes:
        name: short, such as `ties`.
        odd: kinds of values in it that are legal, but that a framework may never pass: `NaN`.
        aims: outcomes of decisions that it was made for.
        verdict: on this set, of the outputs that no set before has shown to be wrong.
        wrong: indices of the outputs that it is the first to show wrong.
    """

    name: str
    verdict: Verdict
    odd: list[str] = []
    aims: list[str] = []
    wrong: list[list[int]] = []


class SpecialValuesRecord(Record, frozen=True, kw_only=True):
    """An array of a result that is not finite everywhere.

    Attributes:
        index: its shape index in the result.
        total: number of elements.
        nan: number of NaNs.
        inf: number of infinities.
    """

    index: list[int]
    total: int
    nan: int = 0
    inf: int = 0


class InputsRecord(Record, frozen=True, kw_only=True):
    """What the program was run on.

    Attributes:
        origin: `generated`, `captured` (a snapshot of the dump) or `given` (`--inputs`).
        description: in words.
        seed: of generated inputs.
        input_range: between which floats were generated, where that is not what the user asked for: ordinary
            ones made outputs that are nothing but NaN.
        rules: what was assumed of parameters that generated inputs had to suit.
        sets: further sets on which the module was run, in order. Where the plain one shows nothing wrong, the
            first one that does is the one that the row is of; those after it are about the other outputs.
        sets_cut: that the clock ended the further sets, and not what they may cost; in words.
        file: where such a set was saved, for `--inputs`.
    """

    origin: str
    description: str
    seed: int | None = None
    input_range: tuple[float, float] | None = None
    rules: list[str] = []
    sets: list[SetRecord] = []
    sets_cut: str = ""
    file: str = ""


def execution_of(inputs: InputsRecord | None) -> int:
    """Which execution of its module the inputs are of, from 1; 0 where that is not known."""
    if inputs is None or inputs.origin != CAPTURED:
        return 0
    number = inputs.description.partition(",")[0].removeprefix("execution ")
    return int(number) if number.isdecimal() else 0


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
        scaled: that both ran with smaller sizes than they have; None where they are as they are.
        in_place: that they ran as they are in less memory than that takes; None where there was enough.
        leaves: comparisons, in tuple order.
        freedoms: what the target may do that HLO does not say, as the judge took it; None where nothing was
            judged.
        outputs: summaries, when there was nothing to compare with.
        unexplained: wrong outputs whose errors were not looked at for a pattern: of many only the worst few
            are, unless `--thorough` asks for all.
        generated_constants: how many constants, whose values the dump leaves out, have generated ones.
        opaque_calls: how many custom calls, which cannot be executed, have stand-ins.
        is_trivial: the program only moves and converts data, but for one operation at most: that it agrees
            hides no other module of which nothing can be said.
        divergence: where a differing program parts from the reference, when it was looked for and found.
        divergence_missing: why it was not looked for, or not found.
        special_values: arrays of the reference's result with NaN or infinity; of the tested one's, where only
            that has any.
        origins: the first instructions that made them.
        origins_missing: why these were not looked for, or not found.
        coverage: which outcomes the decisions of the reference program had, on the inputs of this row and of
            earlier ones of the module.
        coverage_missing: why that was not looked at.
        coverage_tested: of the decisions that only the tested program has.
        fp8: what the reference program loses to float8, where that was asked for.
        fp8_missing: why that is not known.
        repeated: what several runs of the tested program came to, where they were asked for.
        error: why it came to nothing.
        unfinished: what came after the verdict and was cut off, and why: that may be more inputs, or the
            explanation; empty where nothing was.
        weaker: what the program as it was given asks of a backend, and the tested one no longer does.
        notes: how the values of several devices became one result.
        twin_of: path of the first module that has the same programs under other names, whose answer this is;
            empty for the first one.
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
    scaled: ScaleRecord | None = None
    in_place: InPlaceRecord | None = None
    leaves: list[LeafRecord] = []
    freedoms: FreedomsRecord | None = None
    outputs: list[OutputRecord] = []
    unexplained: int = 0
    generated_constants: int = 0
    opaque_calls: int = 0
    is_trivial: bool = False
    divergence: DivergenceRecord | None = None
    divergence_missing: str = ""
    special_values: list[SpecialValuesRecord] = []
    origins: list[NonFiniteRecord] = []
    origins_missing: str = ""
    coverage: CoverageRecord | None = None
    coverage_missing: str = ""
    coverage_tested: CoverageRecord | None = None
    fp8: Fp8Record | None = None
    fp8_missing: str = ""
    repeated: RepeatRecord | None = None
    error: ErrorRecord | None = None
    unfinished: str = ""
    weaker: list[str] = []
    notes: list[str] = []
    twin_of: str = ""
    seconds: float = 0.0

    @property
    def is_unequal(self) -> bool:
        """Whether the two programs are known to be other functions of real numbers."""
        return any(leaf.is_unequal for leaf in self.leaves)

    @property
    def exact_refusal(self) -> str:
        """Why nothing is known of some output as a function of real numbers; empty where that was answered.

        It is asked where the same function is demanded (`ReplayOptions.exact`).
        """
        if self.is_unequal or not self.leaves:
            return ""
        found = [leaf.exact for leaf in self.leaves]
        if not any(found):
            # A text is the same function as itself, which is not asked.
            is_interpreted = (self.reference or "").startswith("numpy") and self.tested == self.reference
            return "" if is_interpreted else "one side is no program that the reference's interpreter ran"
        return next((each.reason for each in found if each and each.relation == "refused"), "")

    @property
    def exact_gap(self) -> str:
        """What no point covered at which the programs are the same function; empty where nothing is left."""
        found = [leaf.exact for leaf in self.leaves if leaf.exact is not None]
        return next((each.reason for each in found if each.relation == "equal where"), "")

    def as_functions(self) -> ModuleRecord:
        """The comparison where nothing but what the programs mean counts, however far their values are apart.

        Of programs that are not known to be other functions it is the same.
        """
        if not self.is_unequal:
            return self
        leaves = [
            msgspec.structs.replace(leaf, verdict=Verdict.UNEQUAL if leaf.is_unequal else Verdict.AGREE)
            for leaf in self.leaves
        ]
        return msgspec.structs.replace(self, verdict=Verdict.UNEQUAL, leaves=leaves)

    @property
    def nothing_but_nan(self) -> list[list[int]]:
        """Shape indices of arrays that agree in having no number at all: such agreement says little."""
        return [found.index for found in self.special_values if found.nan == found.total]

    def fails_on(self, kinds: Sequence[str]) -> bool:
        """Whether it is of one of the kinds that the user calls a finding.

        Args:
            kinds: `nan`, `inf`: one side's result holds such a value; `unstable`, `unsupported`,
                `not-compared`: the verdict on the module, or on one of its outputs.
        """
        verdicts = {self.verdict, *(leaf.verdict for leaf in self.leaves)}
        return self.is_not_finite(kinds) or any(v.value.replace(" ", "-") in kinds for v in verdicts)

    def is_not_finite(self, kinds: Sequence[str]) -> bool:
        """Whether one side's result holds a value of one of the kinds `nan` and `inf`."""
        nan = any(v.nan for v in self.special_values) or any(leaf.nan_mismatches for leaf in self.leaves)
        inf = any(v.inf for v in self.special_values) or any(leaf.inf_mismatches for leaf in self.leaves)
        return ("nan" in kinds and nan) or ("inf" in kinds and inf)

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
