"""The report of `hlotool explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hlotool.explain.records import MatchRecord
from hlotool.report.leaf import source_facts

#: Longest message that is shown in full.
_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was recognised, one block for each message."""

    matches: Sequence[MatchRecord]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.matches:
            yield Text("nothing recognised")
            yield Text("next: hlotool explain --list shows the messages that are known", "dim")
        for number, match in enumerate(self.matches):
            if number:
                yield Text("")
            yield from _block(match)


def _block(match: MatchRecord) -> RenderResult:
    yield Text.assemble((match.id, "bold"), f"  {match.title}")
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    if match.message:
        table.add_row(_where(match.lines), Text(_shortened(match.message)))
    for place in match.places:
        table.add_row("file", Text(place.path))
        for name, value in source_facts(place.source):
            table.add_row(name, Text(value))
    table.add_row("cause", Text(match.cause))
    for number, remedy in enumerate(match.remedy):
        table.add_row("" if number else "remedy", Text(remedy))
    if match.reference:
        table.add_row("see", Text(match.reference))
    yield Padding(table, (0, 0, 0, 2))


def _where(lines: Sequence[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    return f"lines {', '.join(map(str, lines[:3]))}" + (f", … ({len(lines)})" if len(lines) > 3 else "")


def _shortened(message: str) -> str:
    return message if len(message) <= _MESSAGE else message[: _MESSAGE - 1] + "…"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All messages that are known, one line each."""

    matches: Sequence[MatchRecord]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("id", style="bold", no_wrap=True)
        table.add_column("what is wrong", overflow="fold")
        for match in self.matches:
            table.add_row(match.id, Text(match.title))
        yield table
