"""Quoted strings with C escapes, and short texts of other notations read a token at a time.

XLA: absl::CUnescape.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

#: An expression for strings whose escapes are all right.
SAFE_STRING = r'''"[^"\\\n]*+(?>(?:\\(?:[nrt"'\\]|[0-3][0-7]{2})[^"\\\n]*+)*)"'''

_SIMPLE = {
    "a": b"\a",
    "b": b"\b",
    "f": b"\f",
    "n": b"\n",
    "r": b"\r",
    "t": b"\t",
    "v": b"\v",
    "\\": b"\\",
    "'": b"'",
    '"': b'"',
    "?": b"?",
}
_ESCAPE = re.compile(
    r"""\\(?:(?P<simple>[abfnrtv\\'"?])|(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9A-Fa-f]+)
    |u(?P<u4>[0-9A-Fa-f]{4})|U(?P<u8>[0-9A-Fa-f]{8}))""",
    re.VERBOSE,
)

_STRING_OR_BLANK = re.compile(
    r"""(?P<string>"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')
    |(?:[ \t\r\n]|/\*.*?\*/|//[^\r\n]*)+""",
    re.VERBOSE | re.DOTALL,
)


def unquote(token: str) -> str:
    """The content of a string token in single or double quotes, escapes resolved.

    Bytes that escapes spell are taken as UTF-8; those that are no UTF-8 become lone surrogates.

    Raises:
        ValueError: an escape that C does not have, or that spells no byte or character.
    """
    inner = token[1:-1]
    if "\\" not in inner:
        return inner
    content = b"".join(_pieces(inner))
    return content.decode("utf-8", "surrogateescape")


def _pieces(text: str) -> list[bytes]:
    pieces: list[bytes] = []
    at = 0
    while (escape_at := text.find("\\", at)) >= 0:
        escape = _ESCAPE.match(text, escape_at)
        if escape is None:
            raise ValueError(f"unknown escape {text[escape_at : escape_at + 2]} in a string")
        pieces += [text[at:escape_at].encode("utf-8", "surrogateescape"), _bytes_of(escape)]
        at = escape.end()
    pieces.append(text[at:].encode("utf-8", "surrogateescape"))
    return pieces


def _bytes_of(escape: re.Match[str]) -> bytes:
    if (simple := escape["simple"]) is not None:
        return _SIMPLE[simple]
    if (digits := escape["octal"] or escape["hex"]) is not None:
        value = int(digits, 8 if escape["octal"] else 16)
        if value > 0xFF:
            raise ValueError(f"{escape[0]} in a string is more than a byte")
        return bytes([value])
    value = int(escape["u4"] or escape["u8"], 16)
    if value > 0x10FFFF or 0xD800 <= value < 0xE000:
        raise ValueError(f"{escape[0]} in a string is no character")
    return chr(value).encode()


def normalized(text: str) -> str:
    """`text` with single blanks for blanks and comments; strings stay as they are."""
    return _STRING_OR_BLANK.sub(lambda found: found["string"] or " ", text)


_T = TypeVar("_T")


class TokenReader:
    """Reads tokens from left to right; a ValueError says what was expected, and where.

    Args:
        text: to be read to its end.
        token: blanks, then a token as its group 1.
    """

    def __init__(self, text: str, token: re.Pattern[str]) -> None:
        self._text = text
        self._token = token
        self._position = 0

    def peek(self) -> str:
        """The next token; empty at the end."""
        match = self._token.match(self._text, self._position)
        return match.group(1) if match else ""

    def next(self) -> str:
        """The next token, which is passed over."""
        match = self._token.match(self._text, self._position)
        if match is None:
            raise self.error("more text")
        self._position = match.end()
        return match.group(1)

    def take(self, token: str, optional: bool = False) -> bool:
        """Pass over `token`; whether it was there."""
        if self.peek() == token:
            self.next()
            return True
        if not optional:
            raise self.error(f"'{token}'")
        return False

    def finish(self) -> None:
        """Nothing must follow."""
        if self._text[self._position :].strip():
            raise self.error("the end")

    def listed(self, opening: str, closing: str, read: Callable[[], _T]) -> list[_T]:
        """Comma-separated items between two brackets."""
        self.take(opening)
        items = []
        while not self.take(closing, optional=True):
            items.append(read())
            if not self.take(",", optional=True) and self.peek() != closing:
                raise self.error(f"',' or '{closing}'")
        return items

    def quoted(self) -> str:
        """A name, with its quotes."""
        token = self.next()
        if not token.startswith('"'):
            raise self.error("a name in quotes")
        return token

    def integer(self) -> int:
        """A number."""
        token = self.next()
        if not token.isdigit():
            raise self.error("a number")
        return int(token)

    def error(self, expected: str) -> ValueError:
        """The error to raise where something else than `expected` stands."""
        return ValueError(f"expected {expected} at character {self._position + 1} of {self._text!r}")
