"""What users write by hand: names that somebody mistyped and the known ones nearest, regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: How alike two names must be, from 0 to 1: `bugdet` and `budget` are 0.83, `run` and `prune` 0.75.
_ALIKE = 0.6
#: Longer names are not compared, and of more names only the first: time goes with the square of lengths.
_LONGEST, _MOST = 200, 5_000


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that `name` is most like, capitals not counted; empty where none is alike."""
    from difflib import get_close_matches
    from itertools import islice

    if not name or len(name) > _LONGEST:
        return ""
    candidates: dict[str, str] = {}
    for other in islice(known, _MOST):
        if len(other) <= _LONGEST:
            candidates.setdefault(other.lower(), other)
    found = get_close_matches(name.lower(), candidates, n=1, cutoff=_ALIKE)
    return candidates[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'budget'?`, to be put behind a complaint; empty where nothing is alike."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found else ""


def complaint_about(pattern: str) -> str:
    """Why `pattern` is no regular expression; empty where it is one."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    return ""
