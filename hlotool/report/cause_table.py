"""Causes in place of rows, where there are more of these than anybody reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderResult, group
from rich.padding import Padding
from rich.text import Text

from hlotool.findings.verdict import Verdict
from hlotool.report.cause_records import CauseRecord
from hlotool.report.links import place_text
from hlotool.report.tables import facts
from hlotool.report.words import plural, style_of, verdict_text


@group()
def cause_list(causes: Sequence[CauseRecord]) -> RenderResult:
    """Each cause of a run: how often it shows, where it comes from, the worst example and what to type."""
    for cause in causes:
        verdict = Verdict(cause.kind)
        yield Text.assemble(
            (f"{verdict_text(verdict)} ×{cause.count}", style_of(verdict)), "  ", (cause.what, "bold")
        )
        yield Padding(facts(_facts(cause)), (0, 0, 1, 2))


def _facts(cause: CauseRecord) -> Iterator[tuple[str, str | Text]]:
    if cause.source is not None and cause.source.place:
        yield "source", place_text(cause.source)
    elsewhere = f", in {plural(len(cause.folders), 'folder')}" if len(cause.folders) > 1 else ""
    yield "example", f"{cause.example}{elsewhere}"
    if cause.next:
        yield "next", Text(cause.next, no_wrap=True, overflow="ignore")
