"""The reports of commands that list: `check`, `explain`, `backends`, `cache`, `baseline update`, `opt`.

Findings of `check` are listed by file, the gravest last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.checks.explain.entries import CODE
from hlotool.checks.explain.records import RULE, VERDICT, MatchRecord, TopicRecord
from hlotool.checks.records import FailedFile, Finding, Severity
from hlotool.interface.report.command_records import CacheRecord
from hlotool.interface.report.console import Report, facts, next_line, path_text, plain_table
from hlotool.interface.report.leaf import source_facts
from hlotool.interface.report.records import (
    BackendsRecord,
    BaselineRecord,
    CheckRecord,
    ExplainRecord,
    RulesRecord,
)
from hlotool.interface.report.words import plural
from hlotool.rewrite.passes.records import OptionRecord, PassDescription, PassRecord
from hlotool.system.records import CommandRecord, SourceRecord
from hlotool.system.user_input import size_text

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
    return f"{plural(record.modules, 'module')}, {plural(record.files, 'file')}: {found}{ignored}"


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


#: Longest message that is shown in full.
_MESSAGE = 300


class Explanation(Report[ExplainRecord]):
    """What was recognised, one block for each message."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for topic in self.record.topics:
            yield from _topic(topic, self.verbose)
        if not (self.record.matches or self.record.topics):
            yield Text("nothing recognised")
            yield next_line("hlotool explain --list")
        for number, match in enumerate(self.record.matches):
            if number:
                yield Text("")
            yield from _block(match)


def _topic(topic: TopicRecord, verbose: bool) -> RenderResult:
    said_by = "" if topic.kind == VERDICT else f"  ({topic.kind})"
    yield Text.assemble((topic.name, "bold"), (said_by, "dim"), f"  {topic.means}")
    established, more, _ = (topic.established, "", "") if verbose else topic.established.partition("\n\n")
    page = f"{topic.page} (--verbose shows more of it)" if more else topic.page
    rows = [("established", established), ("next", topic.next), ("page", page)]
    yield Padding(facts(rows, gap=4), (0, 0, 1, 2))


def _block(match: MatchRecord) -> RenderResult:
    yield Text.assemble((match.id, "bold"), f"  {match.title}")
    yield Padding(facts(_explain_facts(match), gap=4), (0, 0, 0, 2))


def _explain_facts(match: MatchRecord) -> Iterator[tuple[str, str | Text]]:
    if match.message:
        yield _where(match.lines), _shortened(match.message)
    for place in match.places:
        yield "file", place.path
        yield from source_facts(place.source)
    if match.difference:
        yield "shapes", match.difference
    if match.called:
        yield "called", match.called
    for origin in match.raised:
        where = f"{origin.path}:{origin.line} in {origin.function}"
        yield "said by", f"{where} ({origin.package}, installed here)"
        if origin.condition:
            yield "where", origin.condition
    if match.general:
        yield "known", "only what kind of message it is, not this one"
    yield "cause", match.cause
    yield from (("" if number else "remedy", remedy) for number, remedy in enumerate(match.remedy))
    if match.reference:
        yield "see", match.reference


def _where(lines: Sequence[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    return f"lines {', '.join(map(str, lines[:3]))}" + (f", … ({len(lines)})" if len(lines) > 3 else "")


def _shortened(message: str) -> str:
    return message if len(message) <= _MESSAGE else message[: _MESSAGE - 1] + "…"


class Topics(Report[ExplainRecord]):
    """The names of all that can be explained, by who says them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        named: dict[str, list[str]] = {}
        for topic in self.record.topics:
            kind = f"{topic.kind}s" if topic.kind in (VERDICT, RULE) else topic.kind
            named.setdefault(kind, []).append(topic.name)
        codes = [match.id for match in self.record.matches if CODE.fullmatch(match.id)]
        rows = [(kind, ", ".join(names)) for kind, names in named.items()]
        yield facts([*rows, ("codes", ", ".join(codes))])
        messages = plural(len(self.record.matches) - len(codes), "message")
        yield Text(f"{messages} of XLA, JAX, TensorFlow and PyTorch/XLA: hlotool explain --list", "dim")
        yield next_line("hlotool explain wrong")


class Catalogue(Report[ExplainRecord]):
    """All messages that are known, one line each."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = plain_table()
        table.add_column("id", style="bold", no_wrap=True)
        table.add_column("what is wrong", overflow="fold")
        for match in self.record.matches:
            table.add_row(match.id, Text(match.title))
        yield table


class BackendTable(Report[BackendsRecord]):
    """One line per backend: what it is, or why it cannot be used; with `verbose` also its options."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = plain_table()
        table.add_column("backend", no_wrap=True)
        table.add_column("status", no_wrap=True)
        table.add_column("device", no_wrap=True)
        table.add_column("version, or why it is not available", overflow="fold")
        for backend in self.record.backends:
            status = Text("available", "green") if backend.available else Text("not available", "yellow")
            table.add_row(
                Text(backend.name, "bold"), status, backend.device, Text(backend.version or backend.reason)
            )
        yield table
        if self.verbose:
            yield from self._options()
        else:
            yield Text("--verbose lists the options, as in --backend xla:disable=algsimp", "dim")

    def _options(self) -> Iterator[Table]:
        # A variant that names its device has the options of the backend.
        for backend in self.record.backends:
            if not backend.options or ":" in backend.name:
                continue
            table = plain_table(show_header=False)
            for form, meaning in backend.options.items():
                table.add_row(f"{backend.name}:{form}", meaning)
            yield table


class CacheReport(Report[CacheRecord]):
    """Where the answers are, how many, and what was removed."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.action != "info":
            yield Text(f"removed: {plural(record.removed, 'answer')}, {size_text(record.removed_size)}")
        yield Text.assemble((plural(record.entries, "answer"), "bold"), f", {size_text(record.size)}")
        yield Text(f"in {record.folder}, which a run keeps below {size_text(record.limit)}", "dim")
        if record.removed_environments:
            yield Text(f"removed: {plural(record.removed_environments, 'environment')} of releases")
        if record.environments:
            count = plural(record.environments, "environment")
            yield Text.assemble((count, "bold"), f" of releases, {size_text(record.environments_size)}")


class BaselineReport(Report[BaselineRecord]):
    """What is known from now on, and what has changed; when verbose all of it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if self.verbose:
            yield from (Text(f"  {known.name}: {known.kind} ×{known.count}") for known in record.known)
        yield from (Text(f"+ {name}") for name in record.added)
        yield from (Text(f"- {name}") for name in record.removed)
        amount = sum(known.count for known in record.known)
        yield path_text(record.file).append(f": {plural(amount, 'known finding')}")


class OptRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool opt --json` prints.

    Attributes:
        path: as given.
        passes: as given.
        runs: of passes, in order.
        changed: some pass changed the program.
        text: of the program as it became; empty when it was written to a file.
        output: the file.
    """

    schema: Literal["hlotool.opt/1"] = "hlotool.opt/1"
    versions: dict[str, str]
    path: str
    passes: str
    runs: list[PassRecord]
    changed: bool
    text: str = ""
    output: str = ""
    exit_code: int = 0


class PassesRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool opt --list-passes --json` prints.

    Attributes:
        passes: by name.
        pipelines: names that stand for several passes.
    """

    schema: Literal["hlotool.passes/1"] = "hlotool.passes/1"
    passes: list[PassDescription]
    pipelines: list[PassDescription]
    exit_code: int = 0


class PassList(Report[PassesRecord]):
    """All passes with their options."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for description in self.record.passes:
            yield from _described(description)
        for description in self.record.pipelines:
            yield Text.assemble((description.name, "bold"), f" = {description.about}", _xla(description))


class OptReport(Report[OptRecord]):
    """The program as it became; where it is in a file, or when verbose, what the passes did."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.record.text:
            yield Text(self.record.text)
        if self.verbose or not self.record.text:
            yield pass_table(self.record.runs)


def _described(description: PassDescription) -> RenderResult:
    if description.error:
        yield Text.assemble((description.name, "bold"), (f"  cannot be loaded: {description.error}", "red"))
        return
    yield Text.assemble((description.name, "bold"), f"  {description.about}", _xla(description))
    if description.options:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for option in description.options:
            grid.add_row(_usage(option), Text(option.about))
        yield Padding(grid, (0, 0, 0, 4))


def _xla(description: PassDescription) -> str:
    return f"  (XLA: {description.xla})" if description.xla else ""


def _usage(option: OptionRecord) -> Text:
    default = "" if option.default in (None, "") else f" [{option.default}]"
    return Text.assemble((option.name, "cyan"), f"={option.values}{default}")


def pass_table(runs: Sequence[PassRecord]) -> Table:
    """What each run of a pass did."""
    table = plain_table()
    table.add_column("pipeline", no_wrap=True)
    table.add_column("pass", no_wrap=True)
    table.add_column("instructions", no_wrap=True, justify="right")
    table.add_column("ms", no_wrap=True, justify="right")
    table.add_column("changes", overflow="fold")
    for run in runs:
        sizes = f"{run.instructions_before} → {run.instructions_after}"
        changes = ", ".join(f"{count} {what}" for what, count in sorted(run.changes.items()))
        milliseconds = f"{1000 * run.seconds:.1f}"
        table.add_row(run.pipeline, run.name, sizes, milliseconds, Text(changes or "–"))
    return table
