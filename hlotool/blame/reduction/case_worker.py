"""How does a program at hand fail? It is compiled, run and compared in a worker process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from hlotool.backends.base import DumpingBackend, Value
from hlotool.backends.registry import get_backend
from hlotool.errors import BackendFailed, BackendOutOfMemory, HlotoolError, Unsupported
from hlotool.ir.module import Module
from hlotool.judge.failures import Signature, signature_of_death
from hlotool.judge.verdicts import Answer
from hlotool.parser.reader import parse_module
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.program import Program, compile_program
from hlotool.runs.records import InputsRecord, ModuleRecord
from hlotool.runs.rows import Actual, compare_row, structural_row
from hlotool.runs.runners import Outcome, parameter_difference
from hlotool.runs.task import Task
from hlotool.runs.trials import Trial
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule
from hlotool.system.files import brief_folder
from hlotool.system.records import Record

#: The ends of a compilation are written always.
_NO_PASS = "^$"


def optimised(module: Module, spec: str) -> Module:
    """The program that the passes of a compiler make of another one.

    Args:
        module: the program.
        spec: of the backend that compiles it.

    Raises:
        BackendFailed: the compiler died of it.
        Unsupported: it refuses the program, or the backend cannot show what it makes of one.
        UsageError: no such backend.
    """
    backend = get_backend(spec)
    if not isinstance(backend, DumpingBackend):
        raise Unsupported(f"backend {spec} does not show what it makes of a program")
    with brief_folder() as folder:
        compile_program("", "", module, backend.dumping(folder, _NO_PASS))
        owners = [owner for owner in open_dump(folder).modules if owner.after is not None]
        if not owners:
            raise Unsupported(f"backend {spec} wrote no optimised program")
        owner = max(owners, key=lambda each: len(load_stage(each, each.stages[0]).entry.instructions))
        assert owner.after is not None
        return load_stage(owner, owner.after)


def compare_programs(
    reference: Program,
    tested: Program,
    arguments: Sequence[Any],
    options: ReplayOptions | None = None,
    name: str = "",
) -> ModuleRecord:
    """Run both programs on the same arguments and judge the second by the first.

    Raises:
        HlotoolError: as the two raise it.
    """
    task, trial = _given(arguments, options, name)
    if difference := parameter_difference(reference.runner, tested.runner):
        return structural_row(task, reference, tested, difference)
    expected = reference.runner.run(trial.arguments).value
    outcome = tested.runner.run(trial.arguments, expected)
    return compare_row(task, reference, trial, expected, Actual.computed(tested, outcome))


def compare_results(
    reference: Program,
    tested: Program,
    arguments: Sequence[Any],
    expected: Value,
    outcome: Outcome,
    options: ReplayOptions | None = None,
) -> ModuleRecord:
    """Judge what `tested` returned by what `reference` did, both for the same arguments."""
    task, trial = _given(arguments, options, "")
    return compare_row(task, reference, trial, expected, Actual.computed(tested, outcome))


def compare_result(
    reference: Program,
    arguments: Sequence[Any],
    value: Any,
    origin: str,
    options: ReplayOptions | None = None,
) -> ModuleRecord:
    """Judge what the real program returned by what `reference` returns."""
    task, trial = _given(arguments, options, "")
    expected = reference.runner.run(trial.arguments).value
    return compare_row(task, reference, trial, expected, Actual.given(reference, value, origin))


def _given(arguments: Sequence[Any], options: ReplayOptions | None, name: str) -> tuple[Task, Trial]:
    record = InputsRecord(origin="given", description="values that occurred")
    return Task(DumpModule(None, name, name), options or ReplayOptions()), Trial(tuple(arguments), record)


#: What a worker calls.
FUNCTION = "hlotool.blame.reduction.case_worker:judge_case"


class CaseOutcome(Record, frozen=True, kw_only=True):
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


def judge_case(question: CaseQuestion) -> CaseOutcome:
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
        return CaseOutcome(answer=Answer.UNUSABLE, reason=str(error))
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
        return CaseOutcome(answer=Answer.UNUSABLE, reason=str(error))


def _as_function(question: CaseQuestion, module: Module, reference: Program) -> CaseOutcome:
    """Whether the backend's compiler makes another function of real numbers of a program."""
    options = question.options
    made = compile_program("tested", "", optimised(module, options.backend), options.reference, reference)
    row = compare_programs(reference, made, question.arguments, options)
    unknown = [leaf.exact.reason for leaf in row.leaves if leaf.exact and leaf.exact.relation == "refused"]
    if unknown and not row.is_unequal:
        return CaseOutcome(answer=Answer.UNUSABLE, reason=unknown[0])
    by = f"{get_backend(options.backend).version} (what it makes of the program, on {row.tested})"
    return outcome_of(msgspec.structs.replace(row.as_functions(), tested=by))


def outcome_of(row: ModuleRecord) -> CaseOutcome:
    """The outcome that a comparison shows."""
    answer = row.verdict.answer
    if answer is Answer.BAD:
        return CaseOutcome(answer=answer, failure=row.signature.smaller(), reason=row.reason, row=row)
    return CaseOutcome(answer=answer, reason=row.reason)


def failure_of(error: BackendFailed) -> CaseOutcome:
    """The outcome of a backend that died."""
    return CaseOutcome(answer=Answer.BAD, failure=signature_of_death(error), reason=error.message)
