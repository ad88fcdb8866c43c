"""What is said of a leaf or of a module: THE verdicts."""

from __future__ import annotations

import enum
from collections.abc import Iterable


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


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole: that of its worst part, `identical` when there is none."""
    return max(verdicts, key=lambda v: v.rank, default=Verdict.IDENTICAL)


#: The two sides were compared and agree.
AGREEING = frozenset({Verdict.IDENTICAL, Verdict.AGREE, Verdict.ROUNDING})
#: The two sides were compared and one of them is wrong.
DIFFERING = frozenset({Verdict.WRONG, Verdict.STRUCTURAL})
#: The two sides were compared and differ, and no compiler is to blame.
EXCUSED = frozenset({Verdict.UNSTABLE, Verdict.RANGE, Verdict.SEMANTICS})
#: A backend died.
FAILED = frozenset({Verdict.CRASHED, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY})
