"""The report of `hlotool baseline update` for people."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hlotool.report.baseline_records import BaselineRecord
from hlotool.report.links import path_text
from hlotool.report.tables import Report
from hlotool.report.words import plural


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
