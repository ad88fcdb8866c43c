"""The report of `hlotool releases`: the turning point, and what was tried."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from hlotool.blame.releases import ReleaseRecord, ReleasesRecord
from hlotool.interface.report.console import Report, next_line, plain_table
from hlotool.interface.report.words import LOOKS, plural, seconds
from hlotool.judge.verdicts import Verdict


class ReleasesReport(Report[ReleasesRecord]):
    """The release with which it began, then a line for each that was tried. When quiet, only the former."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.first_wrong:
            text = f"jaxlib {record.first_wrong} is wrong, {record.last_right} is right"
            yield Text(f"✗ {text}", "bold red")
        for note in record.notes:
            yield Text(note, "yellow" if not record.first_wrong else "dim")
        if not self.quiet and record.tried:
            yield Text("")
            yield self._table()
            yield Text("")
        tried = f"{len(record.tried)} of {plural(len(record.known), 'release')} tried"
        yield Text(f"{tried} · {seconds(record.seconds)}")
        if record.interrupted:
            yield Text("interrupted; run the same command again to resume", "yellow")
        if record.first_wrong:
            inputs = ["--inputs", record.inputs] if record.inputs else []
            backend = ["--backend", f"xla:python={record.interpreter}"]
            yield next_line(shlex.join(["hlotool", "bisect", *record.paths, *inputs, *backend]))

    def _table(self) -> RenderableType:
        table = plain_table()
        for name in ("jaxlib", "verdict", "reason"):
            table.add_column(name, overflow="fold")
        for release in self.record.tried:
            table.add_row(*_cells(release))
        return table


def _cells(release: ReleaseRecord) -> Iterator[Text]:
    yield Text(release.version)
    if release.verdict:
        sign, style = LOOKS[Verdict(release.verdict)]
        yield Text(f"{sign} {release.verdict}", style)
    else:
        yield Text("· not tried", "dim")
    yield Text(release.reason, "dim")
