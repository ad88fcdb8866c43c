"""The report of `hlotool extract` for people."""

from __future__ import annotations

import shlex

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hlotool.report.reduce_records import ExtractRecord
from hlotool.report.tables import Report, next_line


class ExtractReport(Report[ExtractRecord]):
    """The command that runs what was cut out; the program where it is in no file, or when verbose."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if self.verbose or not record.output:
            yield Text(record.program)
        if record.output:
            given = ["--inputs", record.inputs_file] if record.inputs_file else []
            yield next_line(shlex.join(["hlotool", "run", record.output, *given]))
