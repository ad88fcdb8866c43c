"""Causes in place of rows, where there are more of these than anybody reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderResult, group
from rich.padding import Padding
from rich.text import Text

from hlotool.findings.verdict import Verdict
from hlotool.report.cause_records import CauseRecord, FolderRecord
from hlotool.report.links import place_text
from hlotool.report.tables import facts
from hlotool.report.words import plural, style_of, verdict_text

#: Folders of one cause that are named.
_LISTED = 4


@group()
def cause_list(causes: Sequence[CauseRecord]) -> RenderResult:
    """Each cause of a run: how often it shows, where it comes from, the worst example and what to type."""
    for cause in causes:
        verdict = Verdict(cause.kind)
        has_twins = 0 < cause.programs < cause.count
        programs = f" of {plural(cause.programs, 'program')}" if has_twins else ""
        head = f"{verdict_text(verdict)} ×{cause.count}{programs}"
        yield Text.assemble((head, style_of(verdict)), "  ", (cause.what, "bold"))
        yield Padding(facts(_facts(cause)), (0, 0, 1, 2))


def _facts(cause: CauseRecord) -> Iterator[tuple[str, str | Text]]:
    if cause.source is not None and cause.source.place:
        yield "source", place_text(cause.source)
    yield "example", cause.example
    if len(cause.folders) > 1:
        yield "in", _folders(cause.folders)
    if cause.next:
        yield "next", Text(cause.next, no_wrap=True, overflow="ignore")


def _folders(folders: Sequence[FolderRecord]) -> str:
    """Where a cause shows, the place with the most findings first."""
    named = [f"{folder.folder or '.'} ×{folder.count}" for folder in folders[:_LISTED]]
    more = len(folders) - _LISTED
    return f"{len(folders)} folders: {', '.join(named)}" + (f" and {more} more" if more > 0 else "")
