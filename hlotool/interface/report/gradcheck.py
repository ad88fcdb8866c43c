"""The report of `hlotool gradcheck`: a block for each derivative that is not right, and the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.interface.report.console import Report, facts
from hlotool.interface.report.leaf import source_facts
from hlotool.interface.report.words import plural, seconds
from hlotool.judge.records import output_name
from hlotool.runs.gradients import GradcheckRecord, SlopeRecord

_LOOKS = {"right": ("✓", "green"), "wrong": ("✗", "bold red"), "unknown": ("?", "yellow")}


class GradcheckReport(Report[GradcheckRecord]):
    """A line for each derivative; what is wrong with one below it. When quiet, only what is not right."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        record = self.record
        if record.error is not None:
            yield Text(f"? {record.error.message}", "yellow")
        for slope in record.slopes:
            if not self.quiet or slope.verdict != "right":
                yield from self._slope(slope)
        counts = Counter(slope.verdict for slope in record.slopes)
        said = " · ".join(f"{counts[name]} {name}" for name in _LOOKS if counts[name])
        what = plural(len(record.slopes), "derivative")
        yield Text(f"{what}: {said or 'none compared'} · {seconds(record.seconds)}")
        if counts["right"]:
            yield Text("right: the same slope in f64 along random directions; no proof", "dim")

    def _slope(self, slope: SlopeRecord) -> Iterator[RenderableType]:
        sign, style = _LOOKS[slope.verdict]
        title = f"parameter {slope.parameter}, {slope.name} {slope.shape}"
        yield Text.assemble((f"{sign} {slope.verdict}", style), "  ", (title, "bold"))
        if slope.verdict != "right" or self.verbose:
            yield Padding(facts(self._facts(slope)), (0, 0, 1, 2))

    def _facts(self, slope: SlopeRecord) -> Iterator[tuple[str, str | Text]]:
        yield "because", slope.reason
        if slope.wrong:
            yield "wrong", f"{slope.wrong} of {slope.looked_at} components that were looked at"
        yield "in G", output_name(slope.output)
        if slope.source is not None:
            yield from source_facts(slope.source)
