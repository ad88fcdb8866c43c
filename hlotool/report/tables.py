"""What reports are made of: facts by name, tables without lines, the command to type next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Report(ABC, Generic[R]):
    """Base of what shows the record of a command to people.

    Attributes:
        record: what to show.
        quiet: only what disagrees, and the totals, where a report is long enough for a difference.
        verbose: everything in full.
    """

    record: R
    quiet: bool = False
    verbose: bool = False

    @abstractmethod
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What rich prints."""


def facts(rows: Iterable[tuple[str, str | Text]], gap: int = 2) -> Table:
    """Names, dim, and what is to be said of each, folded where the terminal is narrow."""
    grid = Table.grid(padding=(0, gap, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, Text(value) if isinstance(value, str) else value)
    return grid


def plain_table(gap: int = 2, *, show_header: bool = True) -> Table:
    """A table without lines, columns `gap` blanks apart."""
    return Table(
        box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim", show_header=show_header
    )


def next_line(command: str) -> Text:
    """`next: ` and a command, never folded, for it is to be copied."""
    return Text.assemble(("next: ", "dim"), (command, "bold"), no_wrap=True, overflow="ignore")


def cut(lines: list[str], limit: int | None) -> str:
    """The first `limit` lines and how many more there are; all of them for None."""
    if limit is not None and len(lines) > limit:
        lines = [*lines[:limit], f"… {len(lines) - limit} lines more"]
    return "\n".join(lines)
