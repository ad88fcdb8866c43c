"""Errors as verdicts and as records, and when two failures are of one kind.

A signature is equal for failures of one kind: names and numbers of a message are left out of it.
"""

from __future__ import annotations

import re

from hlotool.errors import (
    BackendFailed,
    BackendOutOfMemory,
    BackendTimeout,
    HloSyntaxError,
    HlotoolError,
    KernelFault,
    Miscompiled,
    NotCompiled,
    Unsupported,
    VerificationError,
)
from hlotool.ir.types import ShapeIndex
from hlotool.judge.verdicts import Verdict
from hlotool.system.records import ErrorRecord, Record

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
    if isinstance(error, (HloSyntaxError, VerificationError, Unsupported, KernelFault)):
        path, line, column = error.location.path, error.location.line, error.location.column
    if isinstance(error, (VerificationError, Unsupported, KernelFault)):
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


#: Words of a dead backend that count; the rest of a message is mostly data.
_MOST_WORDS = 120


#: What is wrong about elements, and stays so in a smaller program.
_KEPT = ("NaN", "integers")


class Signature(Record, frozen=True, kw_only=True):
    """How something fails.

    Two failures of one program are the same when all fields are. Across programs `elsewhere` says what must
    be equal, and of a program and a smaller one made from it `smaller`.

    Attributes:
        kind: a verdict, the class of an error, or what the end of a command says (`bad`, `signal 11`).
        elements: what is wrong about the elements: `value`, `NaN`, `infinity`, `shape`, or `function`
            (of integers: `integers`) where the programs are other functions; without repetition.
        opcodes: of the instructions that make the wrong outputs.
        outputs: shape indices of the wrong outputs.
        sources: lines of the user's program, as `FILE:LINE`, that the wrong outputs come from.
        words: of what died, without names and numbers.
    """

    kind: str
    elements: tuple[str, ...] = ()
    opcodes: tuple[str, ...] = ()
    outputs: tuple[ShapeIndex, ...] = ()
    sources: tuple[str, ...] = ()
    words: str = ""

    def __str__(self) -> str:
        what = self.words or " and ".join(self.elements)
        made = f" of {', '.join(self.opcodes)}" if self.opcodes else ""
        return f"{self.kind}: {what}{made}" if what else self.kind

    def elsewhere(self) -> Signature:
        """What is left of it in another program: other outputs and lines of that may fail in the same way."""
        return Signature(kind=self.kind, elements=self.elements, opcodes=self.opcodes, words=self.words)

    def smaller(self) -> Signature:
        """What is left of it in a smaller program: its instructions change; a NaN stays one.

        An infinity need not: it is a value as soon as what overflowed is smaller. Another function of real
        numbers does not become one of integers.
        """
        kind = next((f"{self.kind} with {kept}" for kept in _KEPT if kept in self.elements), self.kind)
        return Signature(kind=kind, words=self.words)


def signature_of_death(error: BackendFailed) -> Signature:
    """How a backend died: numbers and names in its words do not count."""
    words = re.sub(r"0x[0-9a-f]+|%?[\w.-]*\d[\w.-]*", "#", error.message.splitlines()[0])
    return Signature(kind=type(error).__name__, words=words[:_MOST_WORDS])
