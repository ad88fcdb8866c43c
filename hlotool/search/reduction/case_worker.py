"""How does a program fail? Runs in worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from hlotool.backends.registry import get_backend
from hlotool.errors import BackendFailed, BackendOutOfMemory, HlotoolError
from hlotool.findings.records import Record
from hlotool.findings.signature import Signature, signature_of_death
from hlotool.findings.verdict import Answer
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.replay.options import ReplayOptions
from hlotool.replay.program import Program, compile_program
from hlotool.replay.records import ModuleRecord
from hlotool.search.comparing import compare_programs
from hlotool.search.optimised import optimised

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
    """Run the program on the reference and on the backend in question.

    Where the same function is asked for (`ReplayOptions.exact`), the backend only compiles it: the program
    that its passes make is compared with the one that it was given.
    """
    options = question.options
    try:
        module = parse_module(question.text)
        module.has_stand_ins = options.opaque
        reference = compile_program("reference", "", module, options.reference)
        reference.runner.run(question.arguments)
    except HlotoolError as error:
        return Outcome(answer=Answer.UNUSABLE, reason=str(error))
    try:
        if options.exact:
            return _as_function(question, module, reference)
        tested = compile_program("tested", "", module, options.backend)
        return outcome_of(compare_programs(reference, tested, question.arguments, options))
    except BackendOutOfMemory as error:
        raise MemoryError(error.message) from error
    except BackendFailed as error:
        return failure_of(error)
    except HlotoolError as error:
        return Outcome(answer=Answer.UNUSABLE, reason=str(error))


def _as_function(question: CaseQuestion, module: Module, reference: Program) -> Outcome:
    """Whether the backend's compiler makes another function of real numbers of a program."""
    options = question.options
    made = compile_program("tested", "", optimised(module, options.backend), options.reference, reference)
    row = compare_programs(reference, made, question.arguments, options)
    unknown = [leaf.exact.reason for leaf in row.leaves if leaf.exact and leaf.exact.relation == "refused"]
    if unknown and not row.is_unequal:
        return Outcome(answer=Answer.UNUSABLE, reason=unknown[0])
    by = f"{get_backend(options.backend).version} (what it makes of the program, on {row.tested})"
    return outcome_of(msgspec.structs.replace(row.as_functions(), tested=by))


def outcome_of(row: ModuleRecord) -> Outcome:
    """The outcome that a comparison shows."""
    answer = row.verdict.answer
    if answer is Answer.BAD:
        return Outcome(answer=answer, failure=row.signature.smaller(), reason=row.reason, row=row)
    return Outcome(answer=answer, reason=row.reason)


def failure_of(error: BackendFailed) -> Outcome:
    """The outcome of a backend that died."""
    return Outcome(answer=Answer.BAD, failure=signature_of_death(error), reason=error.message)
