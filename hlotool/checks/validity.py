"""Rules of the language: what XLA's verifier enforces, and what a program promises to code generation."""

from __future__ import annotations

from collections.abc import Iterator

from hlotool.checks.records import Severity
from hlotool.checks.rules import Applies, Problem, Subject, module_rule
from hlotool.facts.schedules import missing_copies
from hlotool.facts.trip_counts import false_trip_counts
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.verifier import verify

#: The rule that everything in the text is as it must be, constants included.
VALIDITY = "invalid-hlo"


@module_rule(
    VALIDITY,
    Severity.ERROR,
    "HLO that XLA's verifier rejects",
    remedy="a pass or a tool wrote it: `hlotool bisect` finds which",
    applies=Applies.EVERY_STAGE,
)
def invalid_hlo(subject: Subject) -> Iterator[Problem]:
    """Every broken rule of the verifier, named in the message."""
    module = subject.module
    named: dict[str, Instruction | Computation] = {c.name: c for c in module.computations}
    named.update((instruction.name, instruction) for instruction in module.instructions())
    for error in verify(module):
        yield Problem(f"{error.message} [{error.rule}]", named.get(error.instruction or ""))


@module_rule(
    "cut-text",
    Severity.ERROR,
    "a text that ends too early",
    remedy="dump it to files (--xla_dump_to=DIR): logs and messages have limits",
    applies=Applies.EVERY_STAGE,
)
def cut_text(subject: Subject) -> Iterator[Problem]:
    """Where the text ends; rules on the whole program are not applied to what is left."""
    if subject.module.cut:
        yield Problem(subject.module.cut)


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
