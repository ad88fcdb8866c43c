"""The functions of two dumps, and what is asked of each: two versions of a compiler, two machines.

A number in one dump says nothing about the other: functions are paired by what they compute. Of each pair
four comparisons are made, as `run` makes them. Both programs before optimisation show whether the frontend
changed anything; each program after it against its own before shows whether that is a legal execution; where
both are, their difference is one that the language leaves open.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
from msgspec import structs

from hlotool.checks.facts import program_facts
from hlotool.checks.program_records import ProgramFacts
from hlotool.errors import HlotoolError
from hlotool.judge.verdicts import Answer, Verdict, worst
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.runs.task import Task, task_of
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule, Stage
from hlotool.system.records import CommandRecord, ErrorRecord, Record


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A function in one of the dumps.

    Attributes:
        module: of the dump.
        facts: of its program before optimisation; None where that cannot be read.
    """

    module: DumpModule
    facts: ProgramFacts | None

    @property
    def name(self) -> str:
        """The function's, without what frontends put around it."""
        return self.facts.function if self.facts is not None else self.module.name


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A function in both dumps."""

    left: Side
    right: Side

    @property
    def is_same_text(self) -> bool:
        """Whether the frontend handed over the same program, but for names."""
        left, right = self.left.facts, self.right.facts
        return left is not None and right is not None and left.text == right.text


def side_of(module: DumpModule) -> Side:
    """A module of a dump, with what its first stage says."""
    if not module.stages:
        return Side(module, None)
    try:
        program = load_stage(module, module.stages[0], may_compile=False, may_be_elided=True)
    except HlotoolError:
        return Side(module, None)
    return Side(module, program_facts(program, module.title, str(module.stages[0].source)))


def _interface(facts: ProgramFacts) -> tuple[Hashable, ...]:
    return tuple(one.shape for one in facts.parameters), tuple(facts.results)


#: What makes two functions one, from the most certain to the least; those that are alike are paired in order.
_ALIKE: tuple[Callable[[ProgramFacts], tuple[Hashable, ...]], ...] = (
    lambda facts: (facts.function, facts.text),
    lambda facts: (facts.text,),
    lambda facts: (facts.function, facts.structure, *_interface(facts)),
    lambda facts: (facts.function, *_interface(facts)),
    lambda facts: (facts.structure, *_interface(facts)),
    lambda facts: (facts.function,),
)


def paired(left: Sequence[Side], right: Sequence[Side]) -> tuple[list[Pair], list[Side], list[Side]]:
    """The functions that both have, in the order of `left`, and those that only one has.

    What cannot be read is paired by its name.
    """
    found: dict[Side, Side] = {}
    rest = list(right)
    for key in _ALIKE:
        waiting: dict[tuple[Hashable, ...], list[Side]] = {}
        for side in rest:
            if side.facts is not None:
                waiting.setdefault(key(side.facts), []).append(side)
        for side in left:
            if side not in found and side.facts is not None and (same := waiting.get(key(side.facts))):
                found[side] = same.pop(0)
                rest.remove(found[side])
    for side in left:
        same_name = [one for one in rest if one.name == side.name and None in (one.facts, side.facts)]
        if side not in found and same_name:
            found[side] = same_name[0]
            rest.remove(same_name[0])
    pairs = [Pair(side, found[side]) for side in left if side in found]
    return pairs, [side for side in left if side not in found], rest


class Question(enum.Enum):
    """What is compared with what."""

    #: Both programs before optimisation.
    FRONTEND = "frontend"
    #: The first dump's program after optimisation with its own before.
    LEFT = "left"
    #: Likewise of the second.
    RIGHT = "right"
    #: Both programs after optimisation.
    BETWEEN = "between"


def tasks_of(pair: Pair, options: RunOptions) -> dict[Question, Task]:
    """The comparisons of a pair; there is none of what a dump lacks, nor of two equal texts."""
    found = {}
    left, right = pair.left.module, pair.right.module
    if not pair.is_same_text and left.stages and right.stages:
        found[Question.FRONTEND] = _beside(pair, "both frontends", left.stages[0], right.stages[0], options)
    for question, module in ((Question.LEFT, left), (Question.RIGHT, right)):
        if module.pair is not None or module.captures:
            found[question] = task_of(module, options)
    if left.pair is not None and right.pair is not None:
        found[Question.BETWEEN] = _beside(pair, "both compilers", left.pair[1], right.pair[1], options)
    return found


def tasks_on_backends(
    module: DumpModule, options: RunOptions, backends: tuple[str, str]
) -> dict[Question, Task]:
    """The comparisons of one program on two backends: each with the reference, and one with the other."""
    left, right = backends
    chosen = {
        Question.LEFT: (options.reference, left),
        Question.RIGHT: (options.reference, right),
        Question.BETWEEN: (left, right),
    }
    return {
        question: task_of(module, msgspec.structs.replace(options, reference=reference, backend=backend))
        for question, (reference, backend) in chosen.items()
    }


def _beside(pair: Pair, whose: str, left: Stage, right: Stage, options: RunOptions) -> Task:
    """Two stages of two dumps as those of one module, the first one as the reference."""
    owner = pair.left.module
    first = structs.replace(left, kind=Kind.BEFORE_OPTIMIZATIONS)
    # One of a platform would be a compilation of the first.
    second = structs.replace(right, kind=Kind.NAMED, platform="")
    return task_of(
        replace(
            owner,
            number=None,
            directory=f"{pair.left.name} of {whose}",
            stages=(first, second),
            others=(),
            captures=(),
            artefacts=(),
            unfinished="",
        ),
        options,
    )


def is_open(answers: Mapping[Question, Sequence[ModuleRecord]]) -> bool:
    """Whether it is worth comparing both programs after optimisation: nothing else is wrong."""
    return not any(row.verdict.answer is Answer.BAD for rows in answers.values() for row in rows)


class Conclusion(enum.Enum):
    """What is said of a function in two dumps."""

    #: Both results are the same to the bit, and so are those of the programs before optimisation.
    IDENTICAL = "identical"
    #: Both are legal executions, and they differ.
    LEGAL = "both correct"
    #: One of them is no legal execution of its own program.
    LEFT_WRONG = "first wrong"
    RIGHT_WRONG = "second wrong"
    BOTH_WRONG = "both wrong"
    #: The programs before optimisation compute something else.
    FRONTEND = "other program"
    #: Something could not be compared.
    UNKNOWN = "unknown"


class FunctionRecord(Record, frozen=True, kw_only=True):
    """A function in two dumps.

    Attributes:
        function: its name.
        left: its module in the first dump.
        right: likewise in the second.
        conclusion: what is said of it.
        reason: in one sentence.
        same_program: both frontends handed over the same text, but for names.
        frontend: the programs before optimisation; null where they are the same text.
        left_row: the first dump's program after optimisation against its own before; null where it has none.
        right_row: likewise of the second.
        between: both programs after optimisation.
    """

    function: str
    left: str
    right: str
    conclusion: str
    reason: str
    same_program: bool
    frontend: ModuleRecord | None = None
    left_row: ModuleRecord | None = None
    right_row: ModuleRecord | None = None
    between: ModuleRecord | None = None


class CompareRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool compare --json` prints.

    Attributes:
        paths: of both dumps, or of one program.
        backends: both, where it is one program.
        functions: that both dumps have, in the order of the first.
        only_left: modules of the first dump that the second one has no match for.
        only_right: likewise of the second.
        notes: what was passed over, and warnings.
        error: why the whole command came to nothing.
        interrupted: the user stopped it; what is here was finished before.
    """

    schema: Literal["hlotool.compare/1"] = "hlotool.compare/1"
    versions: dict[str, str]
    paths: list[str]
    backends: list[str] = []
    functions: list[FunctionRecord] = []
    only_left: list[str] = []
    only_right: list[str] = []
    notes: list[str] = []
    error: ErrorRecord | None = None
    interrupted: bool = False
    exit_code: int
    seconds: float = 0.0


def record_of(pair: Pair, rows: Mapping[Question, Sequence[ModuleRecord]]) -> FunctionRecord:
    """What the comparisons of a pair come to.

    Args:
        pair: the function.
        rows: of each comparison; none where it was interrupted.
    """
    gravest = {question: _gravest(found) for question, found in rows.items() if found}
    conclusion, reason = _conclusion(pair, gravest)
    return FunctionRecord(
        function=pair.left.name,
        left=pair.left.module.title,
        right=pair.right.module.title,
        conclusion=conclusion.value,
        reason=reason,
        same_program=pair.is_same_text,
        frontend=gravest.get(Question.FRONTEND),
        left_row=gravest.get(Question.LEFT),
        right_row=gravest.get(Question.RIGHT),
        between=gravest.get(Question.BETWEEN),
    )


def _gravest(rows: Sequence[ModuleRecord]) -> ModuleRecord:
    verdict = worst(row.verdict for row in rows)
    return next(row for row in rows if row.verdict is verdict)


def _conclusion(pair: Pair, rows: Mapping[Question, ModuleRecord]) -> tuple[Conclusion, str]:
    frontend, between = rows.get(Question.FRONTEND), rows.get(Question.BETWEEN)
    left, right = rows.get(Question.LEFT), rows.get(Question.RIGHT)
    bad = [row for row in (left, right) if row is not None and row.verdict.answer is Answer.BAD]
    if bad:
        if len(bad) == 2:
            return Conclusion.BOTH_WRONG, bad[0].reason
        return Conclusion.LEFT_WRONG if bad[0] is left else Conclusion.RIGHT_WRONG, bad[0].reason
    if frontend is not None and frontend.verdict.answer is Answer.BAD:
        return Conclusion.FRONTEND, f"before any compilation: {frontend.reason}"
    if left is right is between is None and frontend is not None:
        return _of_programs(frontend)
    needed = [("of the first", left), ("of the second", right)]
    if not pair.is_same_text:
        needed.insert(0, ("of the programs before optimisation", frontend))
    for what, row in needed:
        if row is None:
            return Conclusion.UNKNOWN, f"{what}: there is no stage after optimisation"
        if row.verdict.answer is not Answer.GOOD:
            return Conclusion.UNKNOWN, f"{what}: {row.verdict.value}: {row.reason}"
    if between is not None and between.verdict is Verdict.IDENTICAL:
        if pair.is_same_text:
            return Conclusion.IDENTICAL, "the same program, and the same bits"
        if frontend is not None and frontend.verdict is Verdict.IDENTICAL:
            return Conclusion.IDENTICAL, "the program is written in another way, and gives the same bits"
    if between is None:
        return Conclusion.LEGAL, "each is a correct run of its own program"
    changed = "" if pair.is_same_text else "the frontends wrote it in different ways, of one meaning; "
    return Conclusion.LEGAL, f"{changed}{_freedom(between, left, right)}"


def _of_programs(row: ModuleRecord) -> tuple[Conclusion, str]:
    """What is said of two programs of which neither has been compiled."""
    if row.verdict is Verdict.IDENTICAL:
        return Conclusion.IDENTICAL, "two programs that give the same bits"
    if row.verdict.answer is Answer.GOOD:
        return Conclusion.LEGAL, f"two programs of one meaning; {row.reason}"
    return Conclusion.UNKNOWN, f"{row.verdict.value}: {row.reason}"


def _freedom(between: ModuleRecord, *own: ModuleRecord | None) -> str:
    """What the two legal executions differ in, in the judge's words."""
    if between.verdict is Verdict.IDENTICAL:
        return "the same bits"
    told = [row.reason for row in (between, *own) if row is not None and row.verdict is not Verdict.IDENTICAL]
    return told[0] if told else between.reason


def verdicts_of(record: FunctionRecord) -> list[Verdict]:
    """What decides about the exit status: legal differences of the two are none."""
    rows = (record.frontend, record.left_row, record.right_row)
    found = [row.verdict for row in rows if row is not None]
    if not found and record.between is not None:
        found = [record.between.verdict]
    return found or [Verdict.NOT_COMPARED]
