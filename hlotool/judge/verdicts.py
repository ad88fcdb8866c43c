"""The verdicts on leaves and modules, errors as verdicts, and when two failures are of one kind.

What each verdict means for a search (`Answer`) and for a command (`ExitCode`) is said here and nowhere
else. A signature is equal for failures of one kind: names and numbers of a message are left out of it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

from hlotool.errors import (
    BackendFailed,
    BackendOutOfMemory,
    BackendTimeout,
    ExitCode,
    HloSyntaxError,
    HlotoolError,
    Miscompiled,
    NotCompiled,
    Unsupported,
    VerificationError,
)
from hlotool.ir.types import ShapeIndex
from hlotool.system.records import ErrorRecord, Record


class Verdict(enum.Enum):
    """What is said of a leaf or of a module, from best to worst."""

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
    #: As far off as legal executions are, and yet another function of real numbers.
    DIFFERS = "differs"
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
    #: The compiler that wrote the dump did not come to its end.
    NOT_COMPILED = "not compiled"
    #: Another function of real numbers, where the user asked for the same one.
    UNEQUAL = "unequal"
    #: No legal execution returns this, or it is outside of tolerances that the user set.
    WRONG = "wrong"
    #: Element types, dimensions or tuple structure differ.
    STRUCTURAL = "structural"

    @property
    def rank(self) -> int:
        """0 for the best."""
        return _RANKS[self]

    @property
    def answer(self) -> Answer:
        """What a search for the cause of a failure takes it for."""
        return _MEANINGS[self][0]

    @property
    def exit_code(self) -> ExitCode:
        """The exit status of a command that found nothing graver."""
        return _MEANINGS[self][1]


_RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}


class Answer(enum.Enum):
    """Does the failure in question show here?"""

    #: It does not.
    GOOD = "good"
    #: It does, in the way that was locked.
    BAD = "bad"
    #: The point cannot be judged: it does not run, or fails in another way.
    UNUSABLE = "unusable"


_MEANINGS = {
    Verdict.IDENTICAL: (Answer.GOOD, ExitCode.AGREE),
    Verdict.AGREE: (Answer.GOOD, ExitCode.AGREE),
    Verdict.ROUNDING: (Answer.GOOD, ExitCode.AGREE),
    Verdict.NOT_COMPARED: (Answer.UNUSABLE, ExitCode.NOTHING_COMPARED),
    Verdict.NOT_COMPARABLE: (Answer.UNUSABLE, ExitCode.NOTHING_COMPARED),
    # No number shows it, and a law that is not known would show the same: the user decides whether it counts.
    Verdict.DIFFERS: (Answer.GOOD, ExitCode.AGREE),
    Verdict.UNSTABLE: (Answer.UNUSABLE, ExitCode.INCONCLUSIVE),
    # The sides differ, and the program is not wrong for it.
    Verdict.RANGE: (Answer.GOOD, ExitCode.INCONCLUSIVE),
    Verdict.SEMANTICS: (Answer.GOOD, ExitCode.INCONCLUSIVE),
    Verdict.UNSUPPORTED: (Answer.UNUSABLE, ExitCode.NOTHING_COMPARED),
    Verdict.BAD_INPUT: (Answer.UNUSABLE, ExitCode.USAGE),
    Verdict.CRASHED: (Answer.UNUSABLE, ExitCode.BACKEND_FAILED),
    Verdict.TIMEOUT: (Answer.UNUSABLE, ExitCode.BACKEND_FAILED),
    Verdict.OUT_OF_MEMORY: (Answer.UNUSABLE, ExitCode.BACKEND_FAILED),
    # It is the compiler that failed, and what it was to make does not exist.
    Verdict.NOT_COMPILED: (Answer.UNUSABLE, ExitCode.BACKEND_FAILED),
    Verdict.UNEQUAL: (Answer.BAD, ExitCode.MISMATCH),
    Verdict.WRONG: (Answer.BAD, ExitCode.MISMATCH),
    Verdict.STRUCTURAL: (Answer.BAD, ExitCode.MISMATCH),
}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole: that of its worst part, `identical` when there is none."""
    return max(verdicts, key=lambda v: v.rank, default=Verdict.IDENTICAL)


def exit_code_of(verdicts: Iterable[Verdict]) -> ExitCode:
    """The exit status of a command that found these: the gravest wins; one that agrees hides the excused."""
    found = {verdict.exit_code for verdict in verdicts}
    order = (
        ExitCode.MISMATCH,
        ExitCode.BACKEND_FAILED,
        ExitCode.USAGE,
        ExitCode.AGREE,
        ExitCode.INCONCLUSIVE,
    )
    return next((code for code in order if code in found), ExitCode.NOTHING_COMPARED)


def _with(code: ExitCode) -> frozenset[Verdict]:
    return frozenset(verdict for verdict in Verdict if verdict.exit_code is code)


#: The two sides were compared and agree. Other functions do not, however close their values are.
AGREEING = _with(ExitCode.AGREE) - {Verdict.DIFFERS}
#: The two sides were compared and one of them is wrong.
DIFFERING = _with(ExitCode.MISMATCH)
#: The two sides were compared and differ, and no compiler is to blame.
EXCUSED = _with(ExitCode.INCONCLUSIVE)
#: A backend died.
FAILED = _with(ExitCode.BACKEND_FAILED)
#: It depends on what else the machine did at that time: another try may end otherwise.
OF_THE_MACHINE = frozenset({Verdict.OUT_OF_MEMORY})


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
