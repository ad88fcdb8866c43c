"""Where reports are written: a terminal with colours, or plain lines without padding and folding."""

from __future__ import annotations

import io
import os
from typing import IO, TYPE_CHECKING

from hlotool.system.surrogates import SURROGATES

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.segment import Segments

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
    from hlotool.interface.report.tables import terminal_has_links

    return console.color_system is not None and not console.no_color and terminal_has_links(os.environ)
