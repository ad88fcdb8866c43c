"""Standard streams as they may be found: closed, or unable to show every character.

Where whoever started the process had closed them (`hlotool … >&-`, some services), Python has None in their
place, and the first file that is opened gets their number: what is printed would go into it. They are read as
empty and written to nowhere, as the null device does it.
"""

from __future__ import annotations

import codecs
import os
import sys

#: What reports are drawn with, for encodings that lack it; marks of verdicts stay apart from each other.
_PLAIN = {
    **{"✓": "+", "✗": "x", "≠": "#", "·": ".", "×": "x", "…": "...", "–": "-", "−": "-", "→": "->"},
    **{
        "≤": "<=",
        "≥": ">=",
        "±": "+-",
        "÷": "/",
        "√": "sqrt",
        "█": "#",
        "│": "|",
        "░": ".",
        "▒": ":",
        "▓": "%",
    },
}


def open_closed() -> None:
    """Put the null device in the place of standard streams that are closed."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, open(_null(number), mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _null(number: int) -> int:
    """The null device under `number`, or under another one where something else has that by now."""
    opened = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(opened, True)
    try:
        os.fstat(number)
    except OSError:
        os.dup2(opened, number)
        os.close(opened)
        return number
    return opened


def tolerate_narrow_encodings() -> None:
    """A terminal that cannot show a character gets one like it or a question mark, not a traceback."""
    codecs.register_error("hlotool.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="hlotool.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """See `codecs.register_error`."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(_PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end
