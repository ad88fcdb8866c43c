"""The registry of rules.

A module rule is a function `(Subject) -> Iterator[Problem]`, a dump rule `(Sequence[ProgramFacts]) ->
Iterator[Finding]`; a decorator gives each its id, its severity and one line on what it finds.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from hlotool.check.findings import Finding, Severity
from hlotool.ir.module import Computation, Instruction

if TYPE_CHECKING:
    from hlotool.check.facts import ProgramFacts
    from hlotool.check.subject import Subject


class Applies(enum.Enum):
    """To which stages of a compilation a rule applies."""

    #: To each stage that is looked at.
    EVERY_STAGE = "every stage"
    #: To the program as the user wrote it: the first stage.
    PROGRAM = "the program before optimizations"


@dataclass(frozen=True, slots=True)
class Problem:
    """What a module rule found.

    Attributes:
        message: what is wrong, in one sentence.
        where: the instruction or computation, None for the whole module.
        severity: when it is not the rule's own.
        path: instructions on the way from the cause to `where`.
        details: further lines.
        remedy: what to do, when it is not the rule's own.
    """

    message: str
    where: Instruction | Computation | None = None
    severity: Severity | None = None
    path: Sequence[Instruction] = ()
    details: Sequence[str] = ()
    remedy: str = ""


ModuleCheck: TypeAlias = "Callable[[Subject], Iterator[Problem]]"
DumpCheck: TypeAlias = "Callable[[Sequence[ProgramFacts]], Iterator[Finding]]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: stable name, for `--only`, `--skip` and suppressions.
        severity: of its findings, unless they say otherwise.
        title: what it finds, in one line.
        remedy: what to do about its findings, unless they say otherwise.
        applies: to which stages.
        check_module: looks at one module; None for rules on whole dumps.
        check_dump: looks at all programs of a dump; None for rules on modules.
    """

    id: str
    severity: Severity
    title: str
    remedy: str = ""
    applies: Applies = Applies.PROGRAM
    check_module: ModuleCheck | None = field(default=None, repr=False)
    check_dump: DumpCheck | None = field(default=None, repr=False)


#: All rules by id. Filled when the modules of rules are imported; see `check.catalogue`.
RULES: dict[str, Rule] = {}


def module_rule(
    id: str, severity: Severity, title: str, *, remedy: str = "", applies: Applies = Applies.PROGRAM
) -> Callable[[ModuleCheck], ModuleCheck]:
    """Register a rule that looks at one module."""

    def register(check: ModuleCheck) -> ModuleCheck:
        _add(Rule(id, severity, title, remedy, applies, check_module=check))
        return check

    return register


def dump_rule(
    id: str, severity: Severity, title: str, *, remedy: str = ""
) -> Callable[[DumpCheck], DumpCheck]:
    """Register a rule that looks at all programs of a dump together."""

    def register(check: DumpCheck) -> DumpCheck:
        _add(Rule(id, severity, title, remedy, check_dump=check))
        return check

    return register


def _add(rule: Rule) -> None:
    if rule.id in RULES:
        raise ValueError(f"two rules are called {rule.id}")
    RULES[rule.id] = rule
