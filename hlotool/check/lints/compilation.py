"""Compilations that did not finish: nothing is wrong with what is there, and the end is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlotool.check.facts import ProgramFacts
from hlotool.check.findings import Finding, Severity
from hlotool.check.rules import dump_rule

_REMEDY = (
    "hlotool explain knows many messages of the compiler; hlotool reduce FILE --backend xla makes the program"
    " small while XLA dies of it. Was the process killed (memory, time), or still at work: nothing is wrong"
)


@dump_rule(
    "unfinished-compilation",
    Severity.ERROR,
    "a program that the compiler began with and did not come to an end with",
    remedy=_REMEDY,
)
def unfinished_compilation(programs: Sequence[ProgramFacts]) -> Iterator[Finding]:
    """One finding for each, with the pass that was entered last."""
    for program in programs:
        if program.unfinished:
            yield Finding(
                rule="unfinished-compilation",
                severity=Severity.ERROR,
                message=program.unfinished,
                file=program.file,
                module=program.module,
                remedy=_REMEDY,
            )
