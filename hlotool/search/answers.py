"""What an oracle says of a point of a search space."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol, TypeVar

Candidate_contra = TypeVar("Candidate_contra", contravariant=True)


class Answer(enum.Enum):
    """Does the failure in question show here?"""

    #: It does not.
    GOOD = "good"
    #: It does, in the way that was locked.
    BAD = "bad"
    #: The point cannot be judged: it does not run, or fails in another way.
    UNUSABLE = "unusable"


class FirstFailing(Protocol[Candidate_contra]):
    """An oracle that is asked about several candidates at once and may judge them at the same time."""

    def __call__(self, candidates: Sequence[Candidate_contra]) -> int | None:
        """Position of the first candidate that still fails, None when none does.

        The answer must not depend on how many candidates are judged at the same time.
        """
