"""Checks dumps: the stages of each module in a worker, then what shows when modules are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from hlotool.checks.catalogue import needs_every_stage
from hlotool.checks.program_records import ProgramFacts
from hlotool.checks.records import FailedFile, Finding
from hlotool.errors import BackendFailed, BackendUnavailable
from hlotool.judge.failures import error_record
from hlotool.sources.file_names import Kind
from hlotool.sources.records import DumpModule, Stage, first_and_last, stages_matching
from hlotool.system.executor import Executor
from hlotool.system.records import Record


@dataclass(frozen=True, slots=True)
class CheckTask:
    """The stages of one module, and the rules to apply.

    Attributes:
        module: of the dump.
        stages: those to look at, the program as the user wrote it first.
        rules: ids; None for all.
        has_program: the first stage is the program as the user wrote it.
        gpu: that budgets of fusions are judged for; None where that is unknown.
        target: of the compiler that is asked; empty for none.
    """

    module: DumpModule
    stages: tuple[Stage, ...]
    rules: frozenset[str] | None
    has_program: bool
    gpu: str | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class DumpTask:
    """What is known of all programs of a dump, and the rules to apply; None for all."""

    facts: list[ProgramFacts]
    rules: frozenset[str] | None


class CheckResult(Record, frozen=True, kw_only=True):
    """What a task found.

    Attributes:
        findings: in the order of the stages.
        failures: stages that could not be read.
        facts: of the program, where a rule on the whole dump wants them.
    """

    findings: list[Finding] = []
    failures: list[FailedFile] = []
    facts: ProgramFacts | None = None


#: What a worker imports before its first module.
PRELOAD = ("hlotool.checks.programs", "hlotool.parser.reader", "hlotool.ir.verifier")


@dataclass(slots=True)
class Report:
    """Everything that was found.

    Attributes:
        findings: by file, in the order of the dump; those about several modules last.
        failures: files that could not be checked.
        modules: how many were looked at.
        stages: how many files were looked at.
        ignored: how many findings the configuration accepts; they are not among `findings`.
    """

    findings: list[Finding] = field(default_factory=list)
    failures: list[FailedFile] = field(default_factory=list)
    modules: int = 0
    stages: int = 0
    ignored: int = 0


def check(
    modules: Sequence[DumpModule],
    pool: Executor,
    rules: frozenset[str] | None = None,
    stages: Sequence[str] = (),
    gpu: str | None = None,
    target: str = "",
) -> Report:
    """Apply `rules` to modules.

    Args:
        modules: of dumps.
        pool: where the work is done.
        rules: ids; None for all.
        stages: shell patterns of stage names; without any, the first and the last stage of each module.
        gpu: that budgets of fusions are judged for; None where that is unknown.
        target: of the compiler that is asked, as the backend `aot` takes it; empty for none.
    """
    tasks = [task for module in modules if (task := _task(module, rules, stages, gpu, target))]
    report = Report(modules=len(tasks), stages=sum(len(task.stages) for task in tasks))
    ends = pool.call_all("hlotool.checks.programs:check_module", tasks)
    found = [_result(task, end.value) for task, end in zip(tasks, ends)]
    for result in found:
        report.findings += result.findings
        report.failures += result.failures
    report.failures = _missing_once(report.failures)
    facts = [result.facts for result in found if result.facts is not None]
    compared = [DumpTask(facts, rules)] if facts else []
    for end in pool.call_all("hlotool.checks.programs:dump_findings", compared):
        if isinstance(end.value, BackendFailed):
            raise end.value
        report.findings += msgspec.msgpack.decode(end.value, type=list[Finding])
    return report


def _missing_once(failures: Sequence[FailedFile]) -> list[FailedFile]:
    """A compiler that is missing is missing for all programs: one row says it."""
    missing = BackendUnavailable.__name__
    first = {f.error.message: f for f in reversed(failures) if f.error.kind == missing}
    return [f for f in failures if f.error.kind != missing or f is first[f.error.message]]


def check_stages(
    stages: Iterable[tuple[DumpModule, Stage]], pool: Executor, rules: frozenset[str]
) -> Iterator[CheckResult]:
    """What `rules` say of one stage of each module, in order."""
    tasks = [CheckTask(module, (stage,), rules, has_program=False) for module, stage in stages]
    ends = pool.call_all("hlotool.checks.programs:check_module", tasks)
    for task, end in zip(tasks, ends):
        yield _result(task, end.value)


def _task(
    module: DumpModule, rules: frozenset[str] | None, patterns: Sequence[str], gpu: str | None, target: str
) -> CheckTask | None:
    chosen = stages_matching(module.stages or module.others, patterns) if patterns else first_and_last(module)
    if not chosen:
        return None
    if rules is not None and not needs_every_stage(rules):
        chosen = chosen[:1]  # what the others hold is not needed
    return CheckTask(module, chosen, rules, _is_program(chosen[0], module), gpu, target)


def _is_program(stage: Stage, module: DumpModule) -> bool:
    """The stage is what a frontend gave; of a file alone one has to assume so."""
    return stage.kind in (Kind.BEFORE_OPTIMIZATIONS, Kind.PLAIN) or len(module.stages) == 1


def _result(task: CheckTask, value: bytes | BackendFailed) -> CheckResult:
    if isinstance(value, BackendFailed):
        failure = FailedFile(
            file=str(task.stages[0].source), module=task.module.title, error=error_record(value)
        )
        return CheckResult(failures=[failure])
    return msgspec.msgpack.decode(value, type=CheckResult)
