"""Applies rules to programs: what a worker does. It prints nothing and returns plain records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hlotool.checks.catalogue import chosen_rules
from hlotool.checks.compiled import COMPILER, ask_compiler, beside_the_compiler
from hlotool.checks.facts import program_facts
from hlotool.checks.program_records import ProgramFacts
from hlotool.checks.records import FailedFile, Finding
from hlotool.checks.rules import Applies, CompilerAnswer, Problem, Rule, Subject
from hlotool.checks.run import CheckResult, CheckTask, DumpTask
from hlotool.checks.validity import VALIDITY
from hlotool.errors import BackendFailed, HlotoolError, Unsupported
from hlotool.facts.dataflow import source_of
from hlotool.ir.module import Instruction, Module
from hlotool.judge.failures import error_record
from hlotool.sources.stages import read_stage


def check_module(task: CheckTask) -> CheckResult:
    """Apply the rules to each stage."""
    wanted = chosen_rules(task.rules)
    rules = [rule for rule in wanted if rule.check_module]
    needs_facts = any(rule.check_dump for rule in wanted)
    # Other rules look at few constants.
    reads_literals = any(rule.id == VALIDITY for rule in wanted)
    findings: list[Finding] = []
    failures: list[FailedFile] = []
    facts: ProgramFacts | None = None
    for number, stage in enumerate(task.stages):
        file, title = str(stage.source), task.module.title
        try:
            module = read_stage(stage, reads_literals=reads_literals)
            is_program = task.has_program and number == 0 and not module.cut
            answer = None
            if is_program and task.target and any(rule.id == COMPILER for rule in wanted):
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


def dump_findings(task: DumpTask) -> list[Finding]:
    """What the rules on whole dumps say."""
    rules = [rule for rule in chosen_rules(task.rules) if rule.check_dump is not None]
    return [finding for rule in rules if rule.check_dump for finding in rule.check_dump(task.facts)]
