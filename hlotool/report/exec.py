"""The report of `hlotool exec` for people: what `run` says, what `bisect` says, and how the program ended."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from hlotool.findings.verdict import DIFFERING, Verdict
from hlotool.report.bisect import BisectReport
from hlotool.report.exec_records import ExecRecord
from hlotool.report.next_command import command_after_death
from hlotool.report.tables import Report, next_line
from hlotool.report.terminal import RunReport
from hlotool.report.words import seconds


class ExecReport(Report[ExecRecord]):
    """The program in one line, and the reports of what was done with its dump."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._program()
        yield Text("")
        yield from self._replays()
        if self.record.bisect is not None:
            yield Text("")
            yield BisectReport(self.record.bisect, self.quiet, self.verbose)

    def _program(self) -> Text:
        program = self.record.program
        processes = len(program.processes)
        parts = [
            ended(program.status),
            seconds(program.seconds),
            *([f"{processes} processes"] if processes > 1 else []),
            *([f"dump in {self.record.dump}"] if self.record.dump else []),
        ]
        style = "" if program.status == 0 else "yellow"
        return Text.assemble((f"{shlex.join(program.command)}: ", "bold"), (" · ".join(parts), style))

    def _replays(self) -> Iterator[RenderableType]:
        run = self.record.run
        if not run.modules:
            yield Text("nothing to compare: it compiled no program that was dumped", "yellow")
            return
        report = RunReport(run, self.quiet, self.verbose)
        yield from report.findings()
        if self.record.bisect is not None:
            return
        if any(module.verdict in DIFFERING for module in run.modules):
            yield next_line(shlex.join(["hlotool", "exec", "--bisect", "--", *self.record.program.command]))
        elif command := self._after_death() or report.next_command():
            yield next_line(command)

    def _after_death(self) -> str:
        """A program whose compilation killed the process made small, by the XLA that died of it."""
        dead = [row for row in self.record.run.modules if row.verdict is Verdict.NOT_COMPILED]
        if not dead:
            return ""
        folder = os.path.basename(os.path.dirname(dead[-1].path))
        processes = self.record.program.processes
        pythons = [p.command[0] for p in processes if folder.endswith(f"_{p.pid}") and p.command]
        backend = f"xla:python={pythons[0]}" if pythons and os.path.isabs(pythons[0]) else "xla"
        return command_after_death(dead[-1].path, backend)


def ended(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
