"""The report of `hlotool explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from hlotool.explain.records import MatchRecord
from hlotool.report.leaf import source_facts
from hlotool.report.records import ExplainRecord
from hlotool.report.tables import Report, facts, next_line, plain_table

#: Longest message that is shown in full.
_MESSAGE = 300


class Explanation(Report[ExplainRecord]):
    """What was recognised, one block for each message."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.record.matches:
            yield Text("nothing recognised")
            yield next_line("hlotool explain --list")
        for number, match in enumerate(self.record.matches):
            if number:
                yield Text("")
            yield from _block(match)


def _block(match: MatchRecord) -> RenderResult:
    yield Text.assemble((match.id, "bold"), f"  {match.title}")
    yield Padding(facts(_facts(match), gap=4), (0, 0, 0, 2))


def _facts(match: MatchRecord) -> Iterator[tuple[str, str | Text]]:
    if match.message:
        yield _where(match.lines), _shortened(match.message)
    for place in match.places:
        yield "file", place.path
        yield from source_facts(place.source)
    yield "cause", match.cause
    yield from (("" if number else "remedy", remedy) for number, remedy in enumerate(match.remedy))
    if match.reference:
        yield "see", match.reference


def _where(lines: Sequence[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    return f"lines {', '.join(map(str, lines[:3]))}" + (f", … ({len(lines)})" if len(lines) > 3 else "")


def _shortened(message: str) -> str:
    return message if len(message) <= _MESSAGE else message[: _MESSAGE - 1] + "…"


class Catalogue(Report[ExplainRecord]):
    """All messages that are known, one line each."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = plain_table()
        table.add_column("id", style="bold", no_wrap=True)
        table.add_column("what is wrong", overflow="fold")
        for match in self.record.matches:
            table.add_row(match.id, Text(match.title))
        yield table
