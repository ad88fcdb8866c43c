"""Where reports are written: a terminal with colours, or plain lines without padding and folding."""

from __future__ import annotations

import io
import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

#: Wide enough that rich folds nothing when no terminal is attached.
_UNBOUNDED = 100_000


def console_for(stream: IO[str], width: int | None = None) -> Console:
    """A console on `stream`: its own width and colours on a terminal, unbounded and plain elsewhere."""
    from rich.console import Console

    is_terminal = stream.isatty()
    return Console(
        file=stream,
        width=width if width or is_terminal else _UNBOUNDED,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
        no_color=not is_terminal or bool(os.environ.get("NO_COLOR")) or None,
    )


def render(console: Console, report: RenderableType) -> str:
    """`report` as text for `console`, without blanks at the ends of lines."""
    with console.capture() as capture:
        console.print(report, crop=False)
    return "".join(line.rstrip(" ") + "\n" for line in capture.get().splitlines())


def plain_text(report: RenderableType, width: int | None = None) -> str:
    """`report` as plain text, folded to `width` columns if given."""
    return render(console_for(io.StringIO(), width), report)
