"""Text that is carried along: blanks and comments become single blanks, strings stay as they are."""

from __future__ import annotations

import re

_STRING_OR_BLANK = re.compile(
    r"""(?P<string>"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')
    |(?:[ \t\r\n]|/\*.*?\*/|//[^\r\n]*)+""",
    re.VERBOSE | re.DOTALL,
)


def normalized(text: str) -> str:
    """`text` on one line as far as its strings allow."""
    return _STRING_OR_BLANK.sub(lambda found: found["string"] or " ", text)
