"""How does a program fail? Runs in worker processes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hlotool.errors import BackendFailed, BackendOutOfMemory, HlotoolError
from hlotool.findings.records import Record
from hlotool.findings.verdict import DIFFERING
from hlotool.parse.reader import parse_module
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import compile_program
from hlotool.replay.records import ModuleRecord
from hlotool.search.answers import Answer
from hlotool.search.bisection.failure import answer_of
from hlotool.search.comparing import compare_programs

#: What a worker calls.
FUNCTION = "hlotool.search.reduction.case_worker:judge_case"

#: Kinds of outcomes that are no failure.
GOOD, UNUSABLE = "good", "unusable"


class Outcome(Record, frozen=True, kw_only=True):
    """What a program did.

    Attributes:
        kind: GOOD, UNUSABLE, or how it fails, in words that are equal for failures of one kind.
        reason: in one line.
        row: the comparison, if there was one.
    """

    kind: str
    reason: str = ""
    row: ModuleRecord | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CaseQuestion:
    """Does a program fail on a backend?

    Attributes:
        text: HLO of the program.
        arguments: one per parameter.
        options: which backends are compared, and how.
    """

    text: str
    arguments: tuple[Any, ...]
    options: ReplayOptions


def judge_case(question: CaseQuestion) -> Outcome:
    """Run the program on the reference and on the backend in question."""
    options = question.options
    try:
        module = parse_module(question.text)
        reference = compile_program("reference", "", module, options.reference)
        reference.runner.run(question.arguments)
    except HlotoolError as error:
        return Outcome(kind=UNUSABLE, reason=str(error))
    try:
        tested = compile_program("tested", "", module, options.backend)
        return outcome_of(compare_programs(reference, tested, question.arguments, options))
    except BackendOutOfMemory as error:
        raise MemoryError(error.message) from error
    except BackendFailed as error:
        return failure_of(error)
    except HlotoolError as error:
        return Outcome(kind=UNUSABLE, reason=str(error))


def outcome_of(row: ModuleRecord) -> Outcome:
    """The outcome that a comparison shows."""
    answer = answer_of(row)
    if answer is Answer.BAD:
        nan = any(leaf.nan_mismatches for leaf in row.leaves if leaf.verdict in DIFFERING)
        return Outcome(kind=row.verdict.value + (" with NaN" if nan else ""), reason=row.reason, row=row)
    return Outcome(kind=GOOD if answer is Answer.GOOD else UNUSABLE, reason=row.reason)


def failure_of(error: BackendFailed) -> Outcome:
    """The outcome of a backend that died: numbers and names in its words do not count."""
    words = re.sub(r"0x[0-9a-f]+|%?[\w.-]*\d[\w.-]*", "#", error.message.splitlines()[0])
    return Outcome(kind=f"{type(error).__name__}: {words[:120]}", reason=error.message)
