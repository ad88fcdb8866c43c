"""Words of MLIR text with their positions, and a cursor over them.

MLIR: docs/LangRef.md (grammar of identifiers, literals, types).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import TypeVar

from hlotool.errors import HloSyntaxError, Location, Unsupported

_T = TypeVar("_T")

#: Brackets nested deeper than any program's are damage.
DEEPEST = 60

# A tensor type and a dense constant are one word each: their insides have lexical rules of their own.
_NESTED = r"(?:[^<>]|<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)*"
_TOKEN = re.compile(
    rf"""(?:\s+|//[^\n]*)*(?:
      (?P<tensor>tensor\s*<{_NESTED}>)
    | (?P<dense>dense(?:_resource)?<(?:"[^"]*"|[^>"])*>)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<value>%[\w.$-]+(?:\#\d+)?)
    | (?P<symbol>@(?:"(?:[^"\\\n]|\\.)*"|[\w.$-]+))
    | (?P<open>\{{-\#) | (?P<close>\#-\}})
    | (?P<hash>\#[\w.$]+)
    | (?P<bang>![\w.$]+)
    | (?P<caret>\^[\w.$-]+)
    | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))
    | (?P<word>[A-Za-z_][\w.$]*)
    | (?P<mark>->|::|[()\[\]{{}}<>,=:?*+/|-])
    | (?P<end>\Z)
    | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Text:
    """The text of a file, with its lines.

    Args:
        text: MLIR.
        path: of the file, for messages.
    """

    def __init__(self, text: str, path: str | None) -> None:
        self.text = text
        self.path = path
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def line(self, position: int) -> int:
        """The number of the line, from 1, in which a character stands."""
        return bisect_right(self._starts, position)

    def location(self, position: int) -> Location:
        """Line and column of a character."""
        line = self.line(position)
        return Location(self.path, line, position - self._starts[line - 1] + 1)

    def error(self, message: str, position: int) -> HloSyntaxError:
        """The error to raise for what stands at `position`."""
        location = self.location(position)
        source = self.text[self._starts[location.line - 1] :].split("\n", 1)[0]
        return HloSyntaxError(message, location, source)

    def unsupported(self, reason: str, position: int) -> Unsupported:
        """The error to raise for what is MLIR but has no HLO."""
        return Unsupported(reason, location=self.location(position))

    def no_operation(self, name: str, position: int) -> Unsupported:
        """The error to raise for an operation of another dialect."""
        is_late = name.startswith("sdy.")
        why = ": it is written after partitioning began; take the program before it" if is_late else ""
        return self.unsupported(f"{name} is no operation of HLO{why}", position)


class Cursor:
    """Goes over the words of a text.

    Args:
        source: the text.
    """

    def __init__(self, source: Text) -> None:
        self.source = source
        self.kinds: list[str] = []
        self.words: list[str] = []
        self.starts: list[int] = []
        for found in _TOKEN.finditer(source.text):
            kind = found.lastgroup or "end"
            self.kinds.append(kind)
            self.words.append(found[kind])
            self.starts.append(found.start(kind))
            if kind == "end":
                break
        self.at = 0
        self._depth = 0

    @property
    def kind(self) -> str:
        """The kind of the next word."""
        return self.kinds[self.at]

    @property
    def word(self) -> str:
        """The next word."""
        return self.words[self.at]

    @property
    def position(self) -> int:
        """Where the next word begins."""
        return self.starts[self.at]

    def error(self, expected: str) -> HloSyntaxError:
        """The error to raise where something else was `expected` than the next word."""
        found = "the end of the text" if self.kind == "end" else repr(self.word[:40])
        return self.source.error(f"expected {expected}, found {found}", self.position)

    def ahead(self, count: int = 1) -> str:
        """A word further on; empty behind the end."""
        at = self.at + count
        return self.words[at] if at < len(self.words) else ""

    def kind_ahead(self, count: int = 1) -> str:
        """The kind of a word further on; `end` behind the end."""
        at = self.at + count
        return self.kinds[at] if at < len(self.kinds) else "end"

    def next(self) -> str:
        """Take the next word."""
        word = self.words[self.at]
        if self.kinds[self.at] != "end":
            self.at += 1
        return word

    def take(self, word: str) -> None:
        """Take the next word, which must be `word`."""
        if self.word != word:
            raise self.error(repr(word))
        self.next()

    def taken(self, word: str) -> bool:
        """Take the next word if it is `word`."""
        if self.word != word:
            return False
        self.next()
        return True

    def of_kind(self, kind: str, expected: str) -> str:
        """Take the next word, which must be of a kind."""
        if self.kind != kind:
            raise self.error(expected)
        return self.next()

    def integer(self) -> int:
        """Take an integer."""
        word = self.of_kind("number", "an integer")
        try:
            return int(word, 0)
        except ValueError:
            self.at -= 1
            raise self.error("an integer") from None

    def listed(self, opening: str, closing: str, item: Callable[[], _T]) -> list[_T]:
        """`[item, item]`; in `<item, item,>` the last comma is none."""
        self.take(opening)
        found: list[_T] = []
        with self:
            while not self.taken(closing):
                if found:
                    self.take(",")
                    if closing == ">" and self.taken(closing):
                        break
                found.append(item())
        return found

    def balanced(self) -> str:
        """Take everything from a bracket to the one that closes it; its text."""
        start, opened = self.position, []
        while True:
            word = self.word
            if self.kind == "end":
                raise self.error("a closing bracket")
            if word in _CLOSING:
                opened.append(_CLOSING[word])
            elif opened and word == opened[-1]:
                opened.pop()
            elif word in (")", "]", "}"):
                raise self.error(repr(opened[-1]) if opened else "an opening bracket")
            self.next()
            if not opened:
                return self.source.text[start : self.starts[self.at - 1] + len(word)]

    def __enter__(self) -> None:
        """Go into brackets."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.source.error(f"brackets are nested more than {DEEPEST} deep", self.position)

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
