"""Checks dumps: the stages of each module in a worker, then what shows when modules are compared.

What runs in a worker prints nothing and returns plain records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from hlotool.checks.catalogue import all_rules
from hlotool.checks.compiled import COMPILER, ask_compiler, beside_the_compiler
from hlotool.checks.facts import ProgramFacts, program_facts
from hlotool.checks.records import FailedFile, Finding
from hlotool.checks.rules import Applies, CompilerAnswer, Problem, Rule, Subject
from hlotool.checks.validity import VALIDITY
from hlotool.errors import BackendFailed, BackendUnavailable, HlotoolError, Unsupported
from hlotool.facts.dataflow import source_of
from hlotool.ir.module import Instruction, Module
from hlotool.judge.failures import error_record
from hlotool.sources.file_names import Kind
from hlotool.sources.loading import read_stage
from hlotool.sources.records import DumpModule, Stage, first_and_last, stages_matching
from hlotool.system.executor import Executor
from hlotool.system.records import Record


@dataclass(frozen=True, slots=True)
class CheckTask:
    """The stages of one module, and the rules to apply.

    Attributes:
        module: of the dump.
        stages: those to look at, the program as the user wrote it first.
        rules: ids.
        has_program: the first stage is the program as the user wrote it.
        gpu: that budgets of fusions are judged for; None where that is unknown.
        target: of the compiler that is asked; empty for none.
    """

    module: DumpModule
    stages: tuple[Stage, ...]
    rules: frozenset[str]
    has_program: bool
    gpu: str | None = None
    target: str = ""


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


def check_module(task: CheckTask) -> CheckResult:
    """Apply the rules to each stage."""
    wanted = [rule for rule in all_rules().values() if rule.id in task.rules]
    rules = [rule for rule in wanted if rule.check_module]
    needs_facts = any(rule.check_dump for rule in wanted)
    # Other rules look at few constants.
    reads_literals = VALIDITY in task.rules
    findings: list[Finding] = []
    failures: list[FailedFile] = []
    facts: ProgramFacts | None = None
    for number, stage in enumerate(task.stages):
        file, title = str(stage.source), task.module.title
        try:
            module = read_stage(stage, reads_literals=reads_literals)
            is_program = task.has_program and number == 0 and not module.cut
            answer = None
            if is_program and task.target and COMPILER in task.rules:
                try:
                    answer = ask_compiler(module, task.target)
                except (Unsupported, BackendFailed) as error:
                    failures.append(FailedFile(file=file, module=title, error=error_record(error)))
            found = list(findings_of(module, rules, title, file, is_program, task.gpu, answer))
            findings += beside_the_compiler(found, answer) if answer is not None else found
            if number == 0 and needs_facts:
                facts = program_facts(module, title, file)
                facts = msgspec.structs.replace(facts, unfinished=task.module.unfinished)
        except HlotoolError as error:
            failures.append(FailedFile(file=file, module=title, error=error_record(error)))
    return CheckResult(findings=findings, failures=failures, facts=facts)


def findings_of(
    module: Module,
    rules: Sequence[Rule],
    title: str = "",
    file: str = "",
    is_program: bool = True,
    gpu: str | None = None,
    answer: CompilerAnswer | None = None,
) -> Iterator[Finding]:
    """What `rules` say of `module`; rules on graphs are skipped where the graph itself is broken."""
    subject = Subject(module, gpu, answer)
    for rule in sorted(rules, key=lambda rule: rule.severity.rank):
        if rule.check_module is None or (rule.applies is Applies.PROGRAM and not is_program):
            continue
        problems = list(rule.check_module(subject))
        yield from (_finding(rule, problem, module, title, file) for problem in problems)
        if rule.id == VALIDITY and problems:
            return


def _finding(rule: Rule, problem: Problem, module: Module, title: str, file: str) -> Finding:
    where = problem.where
    instruction = where if isinstance(where, Instruction) else None
    return Finding(
        rule=rule.id,
        severity=problem.severity or rule.severity,
        message=problem.message,
        file=file or (module.path or ""),
        line=where.line if where is not None else 0,
        module=title or module.name,
        instruction=where.name if where is not None else "",
        source=source_of(module, [instruction]) if instruction is not None else None,
        path=[source_of(module, [step]) for step in problem.path],
        details=list(problem.details),
        remedy=problem.remedy or rule.remedy,
    )


#: What a worker imports before its first module.
PRELOAD = ("hlotool.checks.run", "hlotool.parser.reader", "hlotool.ir.verifier")

_decoder = msgspec.msgpack.Decoder(CheckResult)


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
    rules: frozenset[str],
    stages: Sequence[str] = (),
    gpu: str | None = None,
    target: str = "",
) -> Report:
    """Apply `rules` to modules.

    Args:
        modules: of dumps.
        pool: where the work is done.
        rules: ids.
        stages: shell patterns of stage names; without any, the first and the last stage of each module.
        gpu: that budgets of fusions are judged for; None where that is unknown.
        target: of the compiler that is asked, as the backend `aot` takes it; empty for none.
    """
    tasks = [task for module in modules if (task := _task(module, rules, stages, gpu, target))]
    report = Report(modules=len(tasks), stages=sum(len(task.stages) for task in tasks))
    ends = pool.call_all("hlotool.checks.run:check_module", tasks)
    found = [_result(task, end.value) for task, end in zip(tasks, ends)]
    for result in found:
        report.findings += result.findings
        report.failures += result.failures
    report.failures = _missing_once(report.failures)
    facts = [result.facts for result in found if result.facts is not None]
    report.findings += dump_findings(facts, rules)
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
    ends = pool.call_all("hlotool.checks.run:check_module", tasks)
    for task, end in zip(tasks, ends):
        yield _result(task, end.value)


def dump_findings(facts: Sequence[ProgramFacts], rules: frozenset[str]) -> Iterator[Finding]:
    """What the rules on whole dumps say."""
    for rule in all_rules().values():
        if rule.id in rules and rule.check_dump is not None:
            yield from rule.check_dump(facts)


def _task(
    module: DumpModule, rules: frozenset[str], patterns: Sequence[str], gpu: str | None, target: str
) -> CheckTask | None:
    chosen = stages_matching(module.stages or module.others, patterns) if patterns else first_and_last(module)
    if not chosen:
        return None
    if not any(all_rules()[rule].applies is Applies.EVERY_STAGE for rule in rules):
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
    return _decoder.decode(value)
