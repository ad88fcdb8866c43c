"""HLO in the output of `diff`: what was there before, and what is there now."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlotool.dump.markup import is_page
from hlotool.dump.quoted import Lines, Quotation

#: The only hunk of a file: it begins with the first line.
_WHOLE = re.compile(
    r"^@@ -[01](?:,(?P<old>\d{1,9}))? \+[01](?:,(?P<new>\d{1,9}))? @@[^\n]*\n"
    r"(?P<lines>(?>(?:[ +\-\\][^\n]*\n?|\n)*))",
    re.MULTILINE,
)


def both_sides(text: str) -> Iterator[Quotation]:
    """Both sides of each file that a unified diff has in full; of a file that is new or gone there is one."""
    if is_page(text):  # its characters are not yet as they are meant
        return
    counted = Lines(text)
    for hunk in _WHOLE.finditer(text):
        before = counted.before(hunk.start("lines"))
        lines = hunk["lines"].split("\n")
        sides = [_side(lines, mark, int(hunk[count] or 1)) for mark, count in (("-", "old"), ("+", "new"))]
        for side in filter(None, dict.fromkeys(sides)):
            yield Quotation(before, side)


def _side(lines: list[str], mark: str, count: int) -> str:
    """The lines of one side, `count` of them, empty ones in the place of the other's."""
    kept = [line[1:] if line[:1] in (mark, " ", "") else None for line in lines]
    number = 0
    for at, line in enumerate(kept):
        number += line is not None
        if number > count:
            kept = kept[:at]
            break
    return "\n".join(line or "" for line in kept) if number and count else ""
