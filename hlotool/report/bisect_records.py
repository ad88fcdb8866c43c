"""What `hlotool bisect --json` and `hlotool repro verify --json` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hlotool.errors import ExitCode
from hlotool.findings.records import CommandRecord, ErrorRecord
from hlotool.findings.verdict import DIFFERING, Verdict, exit_code_of
from hlotool.replay.options import RunOptions
from hlotool.report.baseline_records import ComparedRecord
from hlotool.report.cause_records import CauseRecord
from hlotool.search.bisection.records import BisectedModule, CulpritRecord, Verification


class BisectRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool bisect --json` prints.

    Attributes:
        paths: as given.
        options: that decide about the results.
        culprits: what was found, one entry per fault.
        causes: culprits that are the same fault, the most frequent last.
        baseline: how they compare with what was known before; null without a baseline.
        modules: those that were searched, and those that could not be judged.
        healthy: names of the modules that agree from end to end.
        comparisons: stages judged, those known from an interrupted run included.
        unusable: steps that gave no answer: what crashed, and what cannot be judged.
        stages_only: some are called healthy for their stages, and what they return is not known.
        notes: what was passed over, and warnings.
        error: why the whole command came to nothing.
        interrupted: the user stopped it; the same command goes on.
    """

    schema: Literal["hlotool.bisect/1"] = "hlotool.bisect/1"
    versions: dict[str, str]
    paths: list[str]
    options: RunOptions
    culprits: list[CulpritRecord] = []
    causes: list[CauseRecord] = []
    baseline: ComparedRecord | None = None
    modules: list[BisectedModule] = []
    healthy: list[str] = []
    comparisons: int = 0
    unusable: int = 0
    stages_only: bool = False
    notes: list[str] = []
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0


class VerifyRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool repro verify --json` prints.

    Attributes:
        bundles: one entry per bundle.
    """

    schema: Literal["hlotool.repro/1"] = "hlotool.repro/1"
    bundles: list[Verification]
    exit_code: int


def bisect_exit_code(
    culprits: Sequence[CulpritRecord], modules: Sequence[BisectedModule], healthy: Sequence[str]
) -> ExitCode:
    """The exit status of a bisection.

    A confirmed culprit decides, then a compiler that died. Nothing wrong is only claimed when every module is
    healthy; where some are not, but something was compared, the bisection is inconclusive.
    """
    if culprits:
        return ExitCode.MISMATCH if all(c.confirmed for c in culprits) else ExitCode.INCONCLUSIVE
    if not modules:
        return ExitCode.AGREE if healthy else ExitCode.NOTHING_COMPARED
    if any(m.verdict == Verdict.NOT_COMPILED.value for m in modules):
        return ExitCode.BACKEND_FAILED
    if healthy or any(m.judged or Verdict(m.verdict) in DIFFERING for m in modules):
        return ExitCode.INCONCLUSIVE
    return exit_code_of(Verdict(module.verdict) for module in modules)


def verify_exit_code(bundles: Sequence[Verification]) -> ExitCode:
    """The gravest of the bundles' own."""
    order = (ExitCode.MISMATCH, ExitCode.INCONCLUSIVE, ExitCode.NOTHING_COMPARED)
    found = {bundle.exit_code for bundle in bundles}
    return next((code for code in order if code in found), ExitCode.AGREE)
