"""What `opt` did: the JSON format, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.interface.report.tables import Report, plain_table
from hlotool.rewrite.passes.base import OptionRecord
from hlotool.rewrite.passes.manager import PassRecord
from hlotool.rewrite.passes.pipeline import PassDescription
from hlotool.system.records import CommandRecord


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
