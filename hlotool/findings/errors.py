"""Errors as records, and the verdict that each kind of error means for a module."""

from __future__ import annotations

from hlotool.errors import (
    BackendFailed,
    BackendOutOfMemory,
    BackendTimeout,
    HloSyntaxError,
    HlotoolError,
    Miscompiled,
    NotCompiled,
    Unsupported,
    VerificationError,
)
from hlotool.findings.records import ErrorRecord
from hlotool.findings.verdict import Verdict

#: The first class that an error belongs to decides.
_VERDICTS: dict[type[HlotoolError], Verdict] = {
    Miscompiled: Verdict.WRONG,
    Unsupported: Verdict.UNSUPPORTED,
    BackendTimeout: Verdict.TIMEOUT,
    BackendOutOfMemory: Verdict.OUT_OF_MEMORY,
    NotCompiled: Verdict.NOT_COMPILED,
    BackendFailed: Verdict.CRASHED,
}


def error_record(error: HlotoolError) -> ErrorRecord:
    """What reports say of `error`."""
    instruction, path, line, column = None, None, 0, 0
    if isinstance(error, (HloSyntaxError, VerificationError, Unsupported)):
        path, line, column = error.location.path, error.location.line, error.location.column
    if isinstance(error, (VerificationError, Unsupported)):
        instruction = error.instruction
    return ErrorRecord(
        kind=type(error).__name__,
        message=" ".join(str(error).split()),
        instruction=instruction,
        path=path,
        line=line,
        column=column,
        log=_log(error),
    )


def verdict_of(error: HlotoolError) -> Verdict:
    """The verdict of a module that ended with `error`."""
    for kind, verdict in _VERDICTS.items():
        if isinstance(error, kind):
            return verdict
    return Verdict.BAD_INPUT


def _log(error: HlotoolError) -> str:
    if isinstance(error, BackendFailed):
        return error.log
    return error.caret() if isinstance(error, HloSyntaxError) else ""
