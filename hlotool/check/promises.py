"""What a program promises to the code that is generated for it, and does not keep whatever it runs on."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.analysis.missing_copies import missing_copies
from hlotool.analysis.trip_counts import false_trip_counts
from hlotool.check.findings import Severity
from hlotool.check.rules import Applies, Problem, module_rule
from hlotool.check.subject import Subject

_REMEDY = "a pass wrote it: `hlotool bisect` finds which"


@module_rule(
    "false-trip-count",
    Severity.ERROR,
    "a loop whose stated number of iterations is not the one that it has",
    remedy=_REMEDY,
    applies=Applies.EVERY_STAGE,
)
def false_trip_count(subject: Subject) -> Iterator[Problem]:
    """Code may be generated for the stated number; nothing that executes the condition notices."""
    for loop, stated, true in false_trip_counts(subject.module):
        yield Problem(f"known_trip_count is {stated}, and the loop runs {true} times", loop)


@module_rule(
    "missing-copy",
    Severity.ERROR,
    "a scheduled program that overwrites what it still needs",
    remedy=_REMEDY,
    applies=Applies.EVERY_STAGE,
)
def missing_copy(subject: Subject) -> Iterator[Problem]:
    """Nothing that computes values notices: in memory the value is gone."""
    for found in missing_copies(subject.module):
        path = [found.value, found.writer, *([found.reader] if found.reader is not None else [])]
        yield Problem(str(found), found.writer, path=path)
