"""Checks the stages of one module. Runs in a worker process, prints nothing, returns plain records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from hlotool.check.catalogue import all_rules
from hlotool.check.facts import ProgramFacts, program_facts
from hlotool.check.findings import FailedFile, Finding
from hlotool.check.rules import Applies, Problem, Rule
from hlotool.check.subject import Subject
from hlotool.check.validity import VALIDITY
from hlotool.dump.loading import read_stage
from hlotool.dump.records import DumpModule, Stage
from hlotool.errors import HlotoolError
from hlotool.findings.errors import error_record
from hlotool.findings.provenance import source_of
from hlotool.findings.records import Record
from hlotool.ir.module import Instruction, Module


@dataclass(frozen=True, slots=True)
class CheckTask:
    """The stages of one module, and the rules to apply.

    Attributes:
        module: of the dump.
        stages: those to look at, the program as the user wrote it first.
        rules: ids.
        has_program: the first stage is the program as the user wrote it.
        gpu: that budgets of fusions are judged for; None where nobody says.
    """

    module: DumpModule
    stages: tuple[Stage, ...]
    rules: frozenset[str]
    has_program: bool
    gpu: str | None = None


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
            findings += findings_of(module, rules, title, file, is_program, task.gpu)
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
) -> Iterator[Finding]:
    """What `rules` say of `module`; rules on graphs are skipped where the graph itself is broken."""
    subject = Subject(module, gpu)
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
