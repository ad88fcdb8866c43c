"""What a bisection found, and whether its bundles still fail, as plain data."""

from __future__ import annotations

from typing import Literal

import msgspec

from hlotool.errors import ExitCode
from hlotool.judge.records import DivergenceRecord
from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import ModuleRecord
from hlotool.system.records import Record, SourceRecord

#: Where a fault came in.
Level = Literal["pass", "codegen", "runtime-library", "flaky"]

#: What is known of a fault on the compiler at hand.
TriggerStatus = Literal["triggers", "does not trigger", "not checked"]


class CandidateRecord(Record, frozen=True, kw_only=True):
    """A pass that may have done it.

    Attributes:
        name: as XLA names it, empty when no dump says.
        pipeline: that it ran in.
        stage: the dump that was written after it.
    """

    name: str
    pipeline: str
    stage: str


class PairRecord(Record, frozen=True, kw_only=True):
    """Two small programs that should compute the same, and do not.

    Attributes:
        before: HLO of the right one.
        after: HLO of the wrong one.
        inputs: arguments of both, as the bytes of an .npz file.
        comparison: of what they return.
    """

    before: str
    after: str
    inputs: bytes
    comparison: ModuleRecord


class SpotRecord(Record, frozen=True, kw_only=True):
    """The instructions to blame, cut out into programs of their own.

    Attributes:
        level: where the fault came in.
        instructions: of the wrong stage, operands first.
        opcodes: theirs.
        place: the calls around them, the outermost first.
        inside: the instruction of a scalar computation that is not as it was; empty when there is none.
        source: the line of the user's program.
        before: HLO of the spot in the stage before; empty when there is none.
        after: HLO of the spot in the wrong stage.
        inputs: the values that occurred, as the bytes of an .npz file.
        program: HLO of the whole program as given, where what it returned is wrong and no stage is.
        program_inputs: its arguments, as the bytes of an .npz file.
        outputs: what it returned, likewise.
        comparison: of the results of the two programs.
        divergence: what the search for them found; None where it is not known what happens inside.
        around: both stages with what stands around the spot: loops, calls, producers; None where such
            programs do not differ as the stages do.
    """

    level: Level = "pass"
    instructions: list[str]
    opcodes: list[str]
    place: list[str] = []
    inside: str = ""
    source: SourceRecord | None = None
    before: str = ""
    after: str = ""
    inputs: bytes = b""
    program: str = ""
    program_inputs: bytes = b""
    outputs: bytes = b""
    comparison: ModuleRecord | None = None
    divergence: DivergenceRecord | None = None
    around: PairRecord | None = None


class TriggerRecord(Record, frozen=True, kw_only=True):
    """Whether a fault shows on the compiler at hand; `of` makes it.

    Attributes:
        summary: all of it in words, such as `triggers on jaxlib 0.10.2`, or `not checked on XLA: REASON`.
        status: `triggers`, `does not trigger`, or `not checked`.
        compiler: that was asked, with its version, such as `jaxlib 0.10.2`; empty where none was.
        backend: its spec.
        form: which program triggers, such as `the program as given`; empty where none does.
        reason: why it was not checked, or what the compiler did instead.
        judged: programs that were compiled to find that out.
    """

    summary: str
    status: TriggerStatus
    compiler: str = ""
    backend: str = ""
    form: str = ""
    reason: str = ""
    judged: int = 0

    @classmethod
    def of(
        cls,
        status: TriggerStatus,
        compiler: str = "",
        *,
        backend: str = "",
        form: str = "",
        reason: str = "",
        judged: int = 0,
    ) -> TriggerRecord:
        """The record that says so in words, too."""
        summary = f"{status} on {compiler or 'XLA'}" + (f": {reason}" if reason else "")
        return cls(
            summary=summary,
            status=status,
            compiler=compiler,
            backend=backend,
            form=form,
            reason=reason,
            judged=judged,
        )


class CulpritRecord(Record, frozen=True, kw_only=True):
    """One fault.

    Attributes:
        module: that it was found in.
        level: where it came in: a pass, the code made of the optimised program, a library that runs a part of
            it, or runs that differ from each other.
        pass: the accused pass; empty at other levels, and where no dump says.
        pipeline: that it ran in.
        candidates: all passes that may be meant, when stages between good and bad could not be judged.
        stage: the first wrong stage, or `result`.
        stage_before: the last stage that is right.
        signature: how it fails: kind, output, pattern.
        instructions: to blame, in the wrong stage.
        opcodes: theirs.
        place: the calls around them, the outermost first.
        source: the line of the user's program.
        reduced_instructions: size of the minimal program, parameters not counted; None when there is none.
        repro: folder of the repro bundle, empty when none was written.
        confirmed: asked again, the answers were the same.
        evidence: why this is believed, one line each.
        comparison: the first wrong stage against the last right one's reference.
        spot: the instructions cut out.
        others: modules that fail in the same way.
        repaired_without: smallest sets of passes without which the compiler at hand gives the right result.
        minimal: HLO of the smallest program found that the compiler at hand gets wrong in the same way.
        minimal_inputs: its arguments, as the bytes of an .npz file.
        minimal_comparison: of its result on the compiler at hand with the reference's.
        trigger: whether that compiler shows the fault.
    """

    module: str
    level: Level
    pass_name: str = msgspec.field(name="pass", default="")
    pipeline: str = ""
    candidates: list[CandidateRecord] = []
    stage: str = ""
    stage_before: str = ""
    signature: str = ""
    instructions: list[str] = []
    opcodes: list[str] = []
    place: list[str] = []
    source: SourceRecord | None = None
    reduced_instructions: int | None = None
    repro: str = ""
    confirmed: bool = False
    evidence: list[str] = []
    comparison: ModuleRecord | None = None
    spot: SpotRecord | None = None
    others: list[str] = []
    repaired_without: list[list[str]] = []
    minimal: str = ""
    minimal_inputs: bytes = b""
    minimal_comparison: ModuleRecord | None = None
    trigger: TriggerRecord | None = None


class BisectedModule(Record, frozen=True, kw_only=True):
    """What the bisection of one module came to.

    Attributes:
        name: of the module.
        path: of the file that speaks for it.
        verdict: of its last stage (or of the captured result) against the first.
        reason: in one line.
        stages: number of its stages.
        judged: number of comparisons made.
        unusable: stages that could not be judged, and why.
        is_monotonic: the history turns once; otherwise a pass repaired what another one broke.
        history: the turns in words.
        culprits: what was found.
        bundle: folder of the repro bundle of the first culprit; empty when none was written.
    """

    name: str
    path: str
    verdict: str
    reason: str = ""
    stages: int = 0
    judged: int = 0
    unusable: list[str] = []
    is_monotonic: bool = True
    history: list[str] = []
    culprits: list[CulpritRecord] = []
    bundle: str = ""


class FlagsRecord(Record, frozen=True, kw_only=True):
    """What the flags of XLA have to do with a program.

    Attributes:
        module: its name.
        path: of its file.
        backend: without any flag.
        given: flags of the dump and of the backend, `NAME=VALUE`.
        refused: of these, those that this compiler does not know, or not with this value; they are left out.
        verdict: of the program with all that are given.
        reason: in one line.
        wrong_with: the smallest sets of these with which it is wrong, each asked twice; one empty set: it is
            wrong without any.
        right_with: sets of flags of the compiler's own with one of which it is right; looked for where it is
            wrong without any. `disable=PASS` leaves a pass out.
        judged: compilations that were judged.
    """

    module: str
    path: str
    backend: str
    given: list[str] = []
    refused: list[str] = []
    verdict: Verdict
    reason: str = ""
    wrong_with: list[list[str]] = []
    right_with: list[list[str]] = []
    judged: int = 0


class Verification(Record, frozen=True, kw_only=True):
    """What running a bundle again came to.

    Attributes:
        folder: of the bundle.
        title: of the bundle.
        fails: the failure is there; None when nothing could be compared.
        same: it fails in the same way.
        expected: how it failed when the bundle was made.
        found: how it fails now; empty when it does not.
        reason: in one line.
        compared: what was run to find that out, in words.
        comparison: the numbers.
    """

    folder: str
    title: str
    fails: bool | None
    same: bool
    expected: str
    found: str
    reason: str
    compared: str = ""
    comparison: ModuleRecord | None = None

    @property
    def exit_code(self) -> ExitCode:
        """1 when it still fails in the same way, 0 when it does not fail, 5 when it fails otherwise."""
        if self.fails is None:
            return ExitCode.NOTHING_COMPARED
        if not self.fails:
            return ExitCode.AGREE
        return ExitCode.MISMATCH if self.same else ExitCode.INCONCLUSIVE
