"""Paths in reports that a terminal opens when they are clicked (OSC 8).

The address is quoted, so that no name can end the sequence that it stands in; `console.render` writes links
only to terminals that have them.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from urllib.parse import quote

from rich.style import Style
from rich.text import Text

from hlotool.findings.records import SourceRecord

#: Terminals that show the sequence, or parts of it, instead of obeying it.
_WITHOUT = ("dumb", "linux", "eterm", "screen")
#: Terminals built on older versions of VTE lose what follows.
_LEAST_VTE = 5000


def path_text(path: str, shown: str = "", style: str = "") -> Text:
    """`shown`, or else the path itself, as a link to the file or folder if there is one here."""
    text = Text(shown or path, style)
    if address := _address(path):
        text.stylize(Style(link=address))
    return text


def user_line_text(source: SourceRecord, style: str = "") -> Text:
    """`train.py:12 in step`: the user's line with its function; empty where the file is not known."""
    where = path_text(source.file, source.user_line, style) if source.file else Text()
    if source.file and source.function:
        where.append(f" in {source.function}", style)
    return where


def place_text(source: SourceRecord, style: str = "") -> Text:
    """The user's line, else the frontend's name, else a library's line; empty where the dump tells none."""
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


def _address(path: str) -> str:
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
