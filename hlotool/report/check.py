"""The report of `hlotool check`: findings by file, the gravest last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.check.findings import FailedFile, Finding, Severity
from hlotool.check.rules import Rule
from hlotool.findings.records import SourceRecord
from hlotool.report.leaf import source_facts
from hlotool.report.records import CheckRecord, RuleRecord, RulesRecord

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}

#: Details that are shown unless everything is asked for.
_DETAILS = 8


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All findings, notes first, and a summary line."""

    record: CheckRecord
    verbose: bool = False
    quiet: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for failure in self.record.failures:
            yield _failure(failure)
        for finding in sorted(self.record.findings, key=lambda finding: -finding.severity.rank):
            if not self.quiet or finding.severity is not Severity.NOTE:
                yield from _finding(finding, self.verbose)
        yield Text(_summary(self.record), "dim" if not self.record.findings else "")


def _failure(failure: FailedFile) -> Text:
    return Text.assemble(("! ", "magenta"), f"{failure.file}: not checked: {failure.error.message}")


def _finding(finding: Finding, verbose: bool) -> Iterator[RenderableType]:
    where = f"{finding.file}:{finding.line}" if finding.line else finding.file
    yield Text.assemble(
        (finding.severity.value, _STYLES[finding.severity]),
        f"  {finding.message}  ",
        (f"[{finding.rule}]", "dim"),
    )
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("file", Text(where))
    if finding.source is not None:
        for name, value in source_facts(finding.source):
            table.add_row(name, Text(value))
    shown = finding.details if verbose else finding.details[:_DETAILS]
    for detail in shown:
        table.add_row("", Text(detail))
    if len(shown) < len(finding.details):
        table.add_row("", Text(f"… and {len(finding.details) - len(shown)} more (--verbose)", "dim"))
    for number, step in enumerate(finding.path):
        table.add_row("" if number else "path", _step(step))
    if finding.remedy:
        table.add_row("remedy", Text(finding.remedy))
    yield Padding(table, (0, 0, 1, 2))


def _step(step: SourceRecord) -> Text:
    text = Text(f"line {step.line}: {step.opcode} %{step.instruction}")
    if step.file:
        text.append(f"  {step.file}:{step.file_line}", "dim")
    return text


def _summary(record: CheckRecord) -> str:
    counts = Counter(finding.severity for finding in record.findings)
    parts = [
        f"{counts[severity]} {severity.value}{'' if counts[severity] == 1 else 's'}"
        for severity in Severity
        if counts[severity]
    ]
    found = " · ".join(parts) or "nothing found"
    ignored = f" · {record.ignored} accepted by the configuration" if record.ignored else ""
    return f"{record.modules} modules, {record.files} files: {found}{ignored}"


@dataclass(frozen=True, slots=True)
class RuleTable:
    """All rules, one line each."""

    rules: Sequence[Rule]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("rule", style="bold", no_wrap=True)
        table.add_column("severity", no_wrap=True)
        table.add_column("what it finds", overflow="fold")
        for rule in self.rules:
            table.add_row(rule.id, Text(rule.severity.value, _STYLES[rule.severity]), Text(rule.title))
        yield table


def rules_record(rules: Sequence[Rule]) -> RulesRecord:
    """The rules as a record."""
    return RulesRecord(
        rules=[
            RuleRecord(id=rule.id, severity=rule.severity, title=rule.title, remedy=rule.remedy)
            for rule in rules
        ]
    )
