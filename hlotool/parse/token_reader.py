"""Short texts of other notations read a token at a time: names in quotes, numbers, lists in brackets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

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
