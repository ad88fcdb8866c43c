"""How does a program fail? Runs in worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hlotool.errors import BackendFailed, BackendOutOfMemory, HlotoolError
from hlotool.findings.records import Record
from hlotool.findings.signature import Signature, signature_of_death
from hlotool.findings.verdict import Answer
from hlotool.parse.reader import parse_module
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import compile_program
from hlotool.replay.records import ModuleRecord
from hlotool.search.comparing import compare_programs

#: What a worker calls.
FUNCTION = "hlotool.search.reduction.case_worker:judge_case"


class Outcome(Record, frozen=True, kw_only=True):
    """What a program did.

    Attributes:
        answer: whether it fails.
        failure: how it fails, as far as a smaller program can fail alike; None where it does not.
        reason: in one line.
        row: the comparison, if there was one.
    """

    answer: Answer
    failure: Signature | None = None
    reason: str = ""
    row: ModuleRecord | None = None

    def __str__(self) -> str:
        return str(self.failure or self.answer.value)


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
        return Outcome(answer=Answer.UNUSABLE, reason=str(error))
    try:
        tested = compile_program("tested", "", module, options.backend)
        return outcome_of(compare_programs(reference, tested, question.arguments, options))
    except BackendOutOfMemory as error:
        raise MemoryError(error.message) from error
    except BackendFailed as error:
        return failure_of(error)
    except HlotoolError as error:
        return Outcome(answer=Answer.UNUSABLE, reason=str(error))


def outcome_of(row: ModuleRecord) -> Outcome:
    """The outcome that a comparison shows."""
    answer = row.verdict.answer
    if answer is Answer.BAD:
        return Outcome(answer=answer, failure=row.signature.smaller(), reason=row.reason, row=row)
    return Outcome(answer=answer, reason=row.reason)


def failure_of(error: BackendFailed) -> Outcome:
    """The outcome of a backend that died."""
    return Outcome(answer=Answer.BAD, failure=signature_of_death(error), reason=error.message)
