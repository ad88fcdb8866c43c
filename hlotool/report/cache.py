"""The report of `hlotool cache`."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from hlotool.amounts import size_text
from hlotool.report.cache_records import CacheRecord
from hlotool.report.tables import Report
from hlotool.report.words import plural


class CacheReport(Report[CacheRecord]):
    """Where the answers are, how many, and what was removed."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.action != "info":
            yield Text(f"removed: {plural(record.removed, 'answer')}, {size_text(record.removed_size)}")
        yield Text.assemble((plural(record.entries, "answer"), "bold"), f", {size_text(record.size)}")
        yield Text(f"in {record.folder}, which a run keeps below {size_text(record.limit)}", "dim")
