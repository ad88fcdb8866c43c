"""Where reports are written, and what they are made of: facts by name, tables, the next command, links.

A terminal opens paths when they are clicked (OSC 8). The address is quoted, so that no name can end the
sequence that it stands in; `console.render` writes links only to terminals that have them.
"""

from __future__ import annotations

import io
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Generic, TypeVar
from urllib.parse import quote

from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import Style
from rich.table import Table
from rich.text import Text

from hlotool.system.records import SURROGATES, SourceRecord

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.segment import Segments


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


def number_table(*columns: str, right: int) -> Table:
    """A table whose columns from number `right` on hold numbers."""
    table = plain_table()
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number >= right else "left", overflow="fold")
    return table


def next_line(command: str) -> Text:
    """`next: ` and a command, never folded, for it is to be copied."""
    return Text.assemble(("next: ", "dim"), (command, "bold"), no_wrap=True, overflow="ignore")


def cut(lines: list[str], limit: int | None) -> str:
    """The first `limit` lines and how many more there are; all of them for None."""
    if limit is not None and len(lines) > limit:
        lines = [*lines[:limit], f"… {len(lines) - limit} lines more"]
    return "\n".join(lines)


#: Terminals that show the sequence, or parts of it, instead of obeying it.
_WITHOUT = ("dumb", "linux", "eterm", "screen")
#: Terminals built on older versions of VTE lose what follows.
_LEAST_VTE = 5000


def path_text(path: str, shown: str = "", style: str = "") -> Text:
    """`shown`, or else the path itself, as a link to the file or folder if there is one here."""
    text = Text(shown or path, style)
    if address := file_address(path):
        text.stylize(Style(link=address))
    return text


def user_line_text(source: SourceRecord, style: str = "") -> Text:
    """`train.py:12 in step`: the user's line with its function; empty where the file is not known."""
    where = path_text(source.file, source.user_line, style) if source.file else Text()
    if source.file and source.function:
        where.append(f" in {source.function}", style)
    return where


def place_text(source: SourceRecord, style: str = "") -> Text:
    """The user's line, else the frontend's name, else a library's line; empty where the dump has none."""
    return path_text(source.file, source.user_line, style) if source.file else Text(source.place, style)


def terminal_has_links(environ: Mapping[str, str]) -> bool:
    """Whether the terminal that the environment speaks of obeys OSC 8, as far as is known.

    `FORCE_HYPERLINK`, which other tools heed, too, says so (`0`: that it does not).
    """
    forced = environ.get("FORCE_HYPERLINK")
    if forced is not None:
        return forced != "0"
    vte = environ.get("VTE_VERSION", "")
    is_old = vte.isdecimal() and int(vte[:9]) < _LEAST_VTE
    return not is_old and not environ.get("TERM", "").startswith(_WITHOUT) and "INSIDE_EMACS" not in environ


def file_address(path: str) -> str:
    """`file://host/absolute/path`; empty where there is nothing, or it is on another machine.

    A name such as `//host/share` is not even looked at: on Windows that alone would log in to `host`.
    """
    if not path or path.startswith(("//", "\\\\")) or "\0" in path:
        return ""
    try:
        if not os.path.exists(path):
            return ""
        full = os.path.abspath(path).replace(os.sep, "/")
    except (OSError, ValueError):
        return ""
    rooted = full if full.startswith("/") else f"/{full}"
    return f"file://{quote(platform.node())}{quote(os.fsencode(rooted))}"


#: What a terminal obeys instead of showing it: C0 and C1 controls but for tab and newline, and the marks that
#: turn the direction of text; and bytes that are no UTF-8, which it cannot be sent. Names may hold them.
_OBEYED = SURROGATES | {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (
        *(*range(9), *range(11, 32), *range(127, 160)),
        *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    )
}

#: What rich fills with escaped text. Some notebooks show `pre` in a font in which columns do not meet.
_HTML = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:normal;'
    "font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace\">{code}</pre>"
)

#: Wide enough that rich folds nothing when no terminal is attached.
_UNBOUNDED = 100_000


def console_for(stream: IO[str], width: int | None = None) -> Console:
    """A console on `stream`: its own width and colours on a terminal, unbounded and plain elsewhere.

    In a notebook rich would not write to the stream but display at once what is printed, and Jupyter has it
    force colours (FORCE_COLOR).
    """
    from rich.console import Console

    is_terminal = stream.isatty()
    return Console(
        file=stream,
        width=width if width or is_terminal else _UNBOUNDED,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
        force_terminal=is_terminal,
        force_jupyter=False,
        no_color=not is_terminal or bool(os.environ.get("NO_COLOR")) or None,
    )


def printable(text: str) -> str:
    """`text` with every character that a terminal would obey as an escape such as `\\x1b`."""
    return text if text.isprintable() else text.translate(_OBEYED)


def render(console: Console, report: RenderableType) -> str:
    """`report` as text for `console`, no blanks at the ends of lines; names cannot command the terminal."""
    with console.capture() as capture:
        console.print(_shown(console, report, _has_links(console)), crop=False)
    return "".join(line.rstrip(" ") + "\n" for line in capture.get().splitlines())


def plain_text(report: RenderableType, width: int | None = None) -> str:
    """`report` as plain text, folded to `width` columns if given."""
    return render(console_for(io.StringIO(), width), report)


def html(report: RenderableType, width: int) -> str:
    """`report` as a fragment of HTML with its colours, folded to `width` columns; names hold no markup."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=width,
        record=True,
        highlight=False,
        markup=False,
        emoji=False,
        force_jupyter=False,
        no_color=False,
    )
    console.print(_shown(console, report), crop=False)
    return console.export_html(inline_styles=True, code_format=_HTML)


def _shown(console: Console, report: RenderableType, has_links: bool = False) -> Segments:
    """`report` in pieces, without what a terminal would obey; links where it `has_links`."""
    from rich.segment import Segment, Segments

    segments = console.render(report)
    return Segments(
        segment if segment.control else Segment(printable(segment.text), segment.style)
        for segment in (segments if has_links else Segment.strip_links(segments))
    )


def _has_links(console: Console) -> bool:
    """Whether paths may be links: on a terminal that shows colours, and is not asked to do without."""

    return console.color_system is not None and not console.no_color and terminal_has_links(os.environ)
