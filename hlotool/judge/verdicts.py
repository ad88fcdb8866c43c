"""The verdicts on leaves and modules, and what each means for a search and for a command.

That is said here and nowhere else (`Answer`, `ExitCode`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from hlotool.errors import (
    ExitCode,
)


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
#: A failure, whatever else was found: a mismatch, a backend that died, input that cannot be used.
FAILING = DIFFERING | FAILED | _with(ExitCode.USAGE)
#: It depends on what else the machine did at that time: another try may end otherwise.
OF_THE_MACHINE = frozenset({Verdict.OUT_OF_MEMORY})
