"""Errors as records, and what they mean for a module."""

from __future__ import annotations

import pytest
from support.run_records import module

from hlotool.errors import (
    BackendCrashed,
    BackendDeadlock,
    BackendOutOfMemory,
    BackendTimeout,
    BackendUnavailable,
    DumpError,
    ElidedConstant,
    EndlessLoop,
    HloSyntaxError,
    HlotoolError,
    InputDataError,
    KernelFault,
    Location,
    Miscompiled,
    NotCompiled,
    ProtoError,
    StoreError,
    Unsupported,
    UsageError,
    VerificationError,
)
from hlotool.interface.report.records import exit_code_of
from hlotool.judge.failures import error_record, verdict_of
from hlotool.judge.verdicts import Verdict
from hlotool.system.records import ErrorRecord

PLACE = Location("m.hlo", 3, 9)

ERRORS: list[tuple[HlotoolError, Verdict]] = [
    (Miscompiled("1 of 2 outputs"), Verdict.WRONG),
    (UsageError("what?"), Verdict.BAD_INPUT),
    (HloSyntaxError("bad", PLACE, "  x = f33[]"), Verdict.BAD_INPUT),
    (VerificationError("rule", "bad", "x", PLACE), Verdict.BAD_INPUT),
    (DumpError("gone"), Verdict.BAD_INPUT),
    (StoreError("s3://bucket/x: no answer"), Verdict.BAD_INPUT),
    (ProtoError("cut"), Verdict.BAD_INPUT),
    (InputDataError("too few"), Verdict.BAD_INPUT),
    (Unsupported("cannot", "x", "infeed", PLACE), Verdict.UNSUPPORTED),
    (ElidedConstant("c", PLACE), Verdict.UNSUPPORTED),
    (BackendUnavailable("no such device"), Verdict.UNSUPPORTED),
    (BackendCrashed("numpy", "boom", "log"), Verdict.CRASHED),
    (BackendDeadlock("numpy", "all wait"), Verdict.CRASHED),
    (KernelFault("race", "reads too early", "fusion", PLACE, "ld.shared"), Verdict.CRASHED),
    (BackendTimeout("numpy", "slow"), Verdict.TIMEOUT),
    (EndlessLoop("numpy", "round and round"), Verdict.TIMEOUT),
    (BackendOutOfMemory("numpy", "big"), Verdict.OUT_OF_MEMORY),
    (NotCompiled("the compilation did not finish"), Verdict.NOT_COMPILED),
]


@pytest.mark.parametrize(("error", "verdict"), ERRORS, ids=lambda value: type(value).__name__)
def test_every_error_has_its_verdict_and_exit_code(error: HlotoolError, verdict: Verdict) -> None:
    assert verdict_of(error) is verdict
    assert exit_code_of([module("m", verdict)]) == error.exit_code
    record = error_record(error)
    assert record.kind == type(error).__name__
    assert "\n" not in record.message


def test_no_class_is_forgotten() -> None:
    def leaves(kind: type[HlotoolError]) -> set[type[HlotoolError]]:
        below = [c for c in kind.__subclasses__() if c.__module__ == HlotoolError.__module__]
        return set().union(*map(leaves, below)) if below else {kind}

    assert leaves(HlotoolError) <= {type(error) for error, _ in ERRORS}


def test_places_and_instructions() -> None:
    assert error_record(VerificationError("rule", "bad", "x", PLACE)) == ErrorRecord(
        kind="VerificationError",
        message="m.hlo:3:9: x: bad [rule]",
        instruction="x",
        path="m.hlo",
        line=3,
        column=9,
    )


def test_logs() -> None:
    assert error_record(BackendCrashed("numpy", "boom", "last words")).log == "last words"
    assert error_record(HloSyntaxError("bad", PLACE, "  x = f33[]")).log.splitlines()[1].strip() == "^"
