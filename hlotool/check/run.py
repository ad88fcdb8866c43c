"""Checks dumps: every module in a worker process, then what only shows when modules are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from hlotool.check.catalogue import all_rules
from hlotool.check.facts import ProgramFacts
from hlotool.check.findings import FailedFile, Finding
from hlotool.check.rules import Applies
from hlotool.check.task import CheckResult, CheckTask
from hlotool.dump.names import Kind
from hlotool.dump.records import Dump, DumpModule, Stage, first_and_last, stages_matching
from hlotool.errors import BackendFailed
from hlotool.findings.errors import error_record
from hlotool.workers.executor import Executor

#: What a worker imports before its first module.
PRELOAD = ("hlotool.check.task", "hlotool.parse.reader", "hlotool.ir.verifier")

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
    dumps: Iterable[Dump],
    pool: Executor,
    rules: frozenset[str],
    stages: Sequence[str] = (),
    gpu: str | None = None,
) -> Report:
    """Apply `rules` to all modules of `dumps`.

    Args:
        dumps: as `open_dump` found them.
        pool: where the work is done.
        rules: ids.
        stages: shell patterns of stage names; without any, the first and the last stage of each module.
        gpu: that budgets of fusions are judged for; None where nobody says.
    """
    modules = [module for dump in dumps for module in dump.modules]
    tasks = [task for module in modules if (task := _task(module, rules, stages, gpu))]
    report = Report(modules=len(tasks), stages=sum(len(task.stages) for task in tasks))
    ends = pool.call_all("hlotool.check.task:check_module", tasks)
    found = [_result(task, end.value) for task, end in zip(tasks, ends)]
    for result in found:
        report.findings += result.findings
        report.failures += result.failures
    facts = [result.facts for result in found if result.facts is not None]
    report.findings += dump_findings(facts, rules)
    return report


def check_stages(
    stages: Iterable[tuple[DumpModule, Stage]], pool: Executor, rules: frozenset[str]
) -> Iterator[CheckResult]:
    """What `rules` say of one stage of each module, in order."""
    tasks = [CheckTask(module, (stage,), rules, has_program=False) for module, stage in stages]
    ends = pool.call_all("hlotool.check.task:check_module", tasks)
    for task, end in zip(tasks, ends):
        yield _result(task, end.value)


def dump_findings(facts: Sequence[ProgramFacts], rules: frozenset[str]) -> Iterator[Finding]:
    """What the rules on whole dumps say."""
    for rule in all_rules().values():
        if rule.id in rules and rule.check_dump is not None:
            yield from rule.check_dump(facts)


def _task(
    module: DumpModule, rules: frozenset[str], patterns: Sequence[str], gpu: str | None
) -> CheckTask | None:
    chosen = stages_matching(module.stages or module.others, patterns) if patterns else first_and_last(module)
    if not chosen:
        return None
    if not any(all_rules()[rule].applies is Applies.EVERY_STAGE for rule in rules):
        chosen = chosen[:1]  # nobody asks what the others hold
    return CheckTask(module, chosen, rules, _is_program(chosen[0], module), gpu)


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
