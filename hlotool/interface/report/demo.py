"""What `hlotool demo` shows, as a record, and how it is shown."""

from __future__ import annotations

from typing import Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.interface.report.console import Report
from hlotool.system.records import CommandRecord, Record


class DemoStepRecord(Record, frozen=True, kw_only=True):
    """A command of the demonstration.

    Attributes:
        about: what it is for, in two sentences.
        command: as it is typed in the folder.
        exit_code: that it ends with.
    """

    about: str
    command: str
    exit_code: int


class DemoRecord(CommandRecord, frozen=True, kw_only=True):
    """What `hlotool demo --json` prints.

    Attributes:
        folder: with the program and the dump that XLA wrote of it.
        steps: what to type there.
    """

    schema: Literal["hlotool.demo/1"] = "hlotool.demo/1"
    folder: str
    steps: list[DemoStepRecord]
    exit_code: int = 0


class DemoReport(Report[DemoRecord]):
    """The folder, and the commands with what they are for."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(f"train.py, and the dump that XLA wrote of it: {self.record.folder}")
        yield Text.assemble(("$ ", "dim"), (f"cd {self.record.folder}", "bold"))
        yield from map(StepReport, self.record.steps)


class StepReport(Report[DemoStepRecord]):
    """What a command is for, and its line."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.quiet:
            yield Padding(Text(self.record.about), (1, 0, 0, 0))
        yield Text.assemble(("$ ", "dim"), (self.record.command, "bold"), no_wrap=True, overflow="ignore")
