"""The registry of rules, and the module under inspection that rules are given.

A module rule is a function `(Subject) -> Iterator[Problem]`, a dump rule `(Sequence[ProgramFacts]) ->
Iterator[Finding]`; a decorator gives each its id, its severity and one line on what it finds. What several
rules need to know of a module the subject computes once.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from hlotool.checks.records import Finding, Severity
from hlotool.facts.buffers import is_tiled
from hlotool.facts.flow import CallGraph
from hlotool.facts.ranges import ForwardRanges
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.ir.walk import Users, users

if TYPE_CHECKING:
    from hlotool.checks.program_records import ProgramFacts


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


#: All rules by id. Filled when the modules of rules are imported; see `checks.catalogue`.
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


@dataclass(frozen=True, slots=True)
class CompilerAnswer:
    """What a compiler made of a program.

    Attributes:
        compiler: its version, and the device.
        refusal: why it makes nothing of it; empty where it compiles.
    """

    compiler: str
    refusal: str = ""


@dataclass(eq=False)
class Subject:
    """A module under inspection.

    Attributes:
        module: to look at; it does not change meanwhile.
        gpu: that budgets of fusions are judged for; None where that is unknown.
        answer: of a compiler that was asked; None where none was.
    """

    module: Module
    gpu: str | None = None
    answer: CompilerAnswer | None = None

    @cached_property
    def is_for_tpu(self) -> bool:
        """Whether a compiler for TPUs wrote it, whose fusions follow rules of their own."""
        return is_tiled(self.module)

    @cached_property
    def calls(self) -> CallGraph:
        """Who calls whom, and where each instruction stands."""
        return CallGraph(self.module)

    @property
    def computations(self) -> list[Computation]:
        """What the entry reaches, callees before callers."""
        return self.calls.computations

    @property
    def instructions(self) -> Collection[Instruction]:
        """All instructions of those computations, in order."""
        return self.calls.home.keys()

    @cached_property
    def users(self) -> Users:
        """Who reads each instruction."""
        return {i: readers for c in self.computations for i, readers in users(c).items()}

    @cached_property
    def ranges(self) -> ForwardRanges:
        """What values each instruction is sure to have, whatever the parameters hold."""
        return ForwardRanges(self.calls.home)

    def clamped_dimension(self, instruction: Instruction) -> int | None:
        """The first dimension in which a dynamic slice or update starts out of range whatever the data."""
        sizes = _slice_sizes(instruction)
        if sizes is None:
            return None
        array, window, first = sizes
        for dimension, index in enumerate(instruction.operands[first:]):
            interval = self.ranges.of(index)
            if interval.low > array.dims[dimension] - window[dimension] or interval.high < 0:
                return dimension
        return None


def _slice_sizes(instruction: Instruction) -> tuple[ArrayShape, tuple[int, ...], int] | None:
    """The array, the sizes of the part, and which operand is the first start index."""
    if instruction.opcode not in ("dynamic-slice", "dynamic-update-slice"):
        return None
    first = 1 if instruction.opcode == "dynamic-slice" else 2
    array = instruction.operands[0].shape
    part = instruction.shape if first == 1 else instruction.operands[1].shape
    if not isinstance(array, ArrayShape) or not isinstance(part, ArrayShape):
        return None
    one_each = len(instruction.operands) - first == array.rank
    return (array, part.dims, first) if one_each else None
