"""The report of `hlotool check`: findings by file, the gravest last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.check.findings import FailedFile, Finding, Severity
from hlotool.findings.records import SourceRecord
from hlotool.report.leaf import source_facts
from hlotool.report.links import path_text
from hlotool.report.records import CheckRecord, RulesRecord
from hlotool.report.tables import Report, facts, plain_table

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}

#: Details that are shown unless everything is asked for.
_DETAILS = 8


class CheckReport(Report[CheckRecord]):
    """All findings, notes first, and a summary line."""

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
    where = path_text(finding.file, f"{finding.file}:{finding.line}" if finding.line else "")
    yield Text.assemble(
        (finding.severity.value, _STYLES[finding.severity]),
        f"  {finding.message}  ",
        (f"[{finding.rule}]", "dim"),
    )
    yield Padding(facts(_facts(finding, where, verbose), gap=4), (0, 0, 1, 2))


def _facts(finding: Finding, where: Text, verbose: bool) -> Iterator[tuple[str, str | Text]]:
    yield "file", where
    if finding.source is not None:
        yield from source_facts(finding.source)
    shown = finding.details if verbose else finding.details[:_DETAILS]
    yield from (("", detail) for detail in shown)
    if len(shown) < len(finding.details):
        yield "", Text(f"… and {len(finding.details) - len(shown)} more (--verbose)", "dim")
    yield from (("" if number else "path", _step(step)) for number, step in enumerate(finding.path))
    if finding.remedy:
        yield "remedy", finding.remedy


def _step(step: SourceRecord) -> Text:
    text = Text(f"line {step.line}: {step.opcode} %{step.instruction}")
    if step.file:
        text.append("  ").append_text(path_text(step.file, step.user_line, "dim"))
    return text


def _summary(record: CheckRecord) -> str:
    counts = Counter(finding.severity for finding in record.findings)
    parts = [
        f"{counts[severity]} {severity.value}{'' if counts[severity] == 1 else 's'}"
        for severity in Severity
        if counts[severity]
    ]
    if record.failures:
        parts.append(f"{len(record.failures)} not checked")
    found = " · ".join(parts) or "nothing found"
    ignored = f" · {record.ignored} accepted by the configuration" if record.ignored else ""
    return f"{record.modules} modules, {record.files} files: {found}{ignored}"


class RuleTable(Report[RulesRecord]):
    """All rules, one line each."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = plain_table()
        table.add_column("rule", style="bold", no_wrap=True)
        table.add_column("severity", no_wrap=True)
        table.add_column("what it finds", overflow="fold")
        for rule in self.record.rules:
            table.add_row(rule.id, Text(rule.severity.value, _STYLES[rule.severity]), Text(rule.title))
        yield table
