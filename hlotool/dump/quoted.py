"""HLO that is quoted in another language: fences of Markdown, preformatted HTML, string literals of programs.

All of it is found from front to back by what opens it; what never closes is passed over.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quotation:
    """A text inside of another one.

    Attributes:
        line: how many lines of the outer text stand before it.
        text: as it is meant, without what its surroundings ask for.
    """

    line: int
    text: str


class Lines:
    """Counts the lines before ever later positions of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._count = 0

    def before(self, position: int) -> int:
        """How many lines end before `position`, which is not before the last one asked for."""
        self._count += self._text.count("\n", self._at, position)
        self._at = position
        return self._count


_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<fence>`{3,}|~{3,})[^`\n]*$", re.MULTILINE)
_CLOSING = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t\r]*")
_PRE = re.compile(r"<pre\b[^<>]{0,200}>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


def fenced(text: str) -> Iterator[Quotation]:
    """What stands between the fences of Markdown, without the marks and blanks in front of them.

    A fence that is not closed holds the rest of the text: so ends what was cut.
    """
    counted, at = Lines(text), 0
    while (opening := _FENCE.search(text, at)) is not None:
        marks = re.compile(rf"[ \t>]{{0,{len(opening['indent'])}}}")
        line, at = counted.before(opening.end() + 1) if opening.end() < len(text) else 0, opening.end() + 1
        inside: list[str] = []
        while at < len(text):
            end = text.find("\n", at)
            one, at = text[at : end if end >= 0 else len(text)], end + 1 if end >= 0 else len(text)
            closing = _CLOSING.fullmatch(one)
            if closing is not None and closing[1].startswith(opening["fence"]):
                break
            inside.append(marks.sub("", one, count=1))
        yield Quotation(line, "\n".join(inside))


def preformatted(text: str) -> Iterator[Quotation]:
    """What stands in `<pre>`, its tags taken away and its characters as they are meant."""
    counted, at = Lines(text), 0
    while (opening := _PRE.search(text, at)) is not None:
        end = text.find("</pre", opening.end())
        at = end if end >= 0 else len(text)
        yield Quotation(counted.before(opening.end()), html.unescape(_TAG.sub("", text[opening.end() : at])))


#: What opens a literal, or hides what looks like one: C++'s raw strings, Python's long ones, Rust's, those in
#: backticks (JavaScript, Go), ordinary ones, of which several may stand in a row, and comments.
_OPENER = re.compile(
    r"""
      R"(?P<delimiter>[^()\\\s"]{0,16})\(
    | (?P<python>[a-zA-Z]{0,2})(?P<quotes>\"{3}|'{3})
    | \br(?P<hashes>\#{1,8})"
    | (?P<template>`[^`\\]*+(?:\\.[^`\\]*+)*+`)
    | '(?:\\.|[^'\\\n])'
    | (?P<row>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"(?:[\s+\\]*+"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")*+)
    | (?<!:)//[^\n]*+
    | (?P<comment>/\*)
    """,
    re.DOTALL | re.VERBOSE,
)
_PART = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:(\r?\n)|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r"}


def literals(text: str) -> Iterator[Quotation]:
    """The values of string literals; of ordinary ones those in a row count as one."""
    counted, at = Lines(text), 0
    never: set[str] = set()
    while (opening := _OPENER.search(text, at)) is not None:
        at = opening.end()
        if (closer := _closer(opening)) is None:
            if found := opening["template"] or opening["row"]:
                yield Quotation(counted.before(opening.start()), _value(found))
            continue
        is_long = opening["quotes"] is not None
        end = -1 if closer in never else _find(text, closer, at, skips_escaped=is_long)
        if end < 0:
            never.add(closer)  # nor does it stand further down
            continue
        value = text[at:end]
        if opening["quotes"] is not None and "r" not in opening["python"].lower():
            value = _unescaped(value)
        if opening["comment"] is None:
            yield Quotation(counted.before(at), value)
        at = end + len(closer)


def _closer(opening: re.Match[str]) -> str | None:
    """What ends the literal or comment that `opening` begins; None where that is its own end."""
    if opening["delimiter"] is not None:
        return f'){opening["delimiter"]}"'
    if opening["hashes"] is not None:
        return f'"{opening["hashes"]}'
    return opening["quotes"] or ("*/" if opening["comment"] else None)


def _find(text: str, closer: str, at: int, skips_escaped: bool) -> int:
    """Where `closer` stands from `at` on, -1 for nowhere."""
    end = text.find(closer, at)
    while skips_escaped and end > 0 and text[end - 1] == "\\":
        end = text.find(closer, end + 1)
    return end


def _value(literal: str) -> str:
    """Of a literal in backticks, or of ordinary ones in a row."""
    return _unescaped(literal[1:-1] if literal[0] == "`" else "".join(_PART.findall(literal)))


def _unescaped(text: str) -> str:
    def value(found: re.Match[str]) -> str:
        continued, byte, code, character = found.groups()
        if continued:
            return ""
        return chr(int(byte or code, 16)) if byte or code else _NAMED.get(character, character)

    return _ESCAPE.sub(value, text) if "\\" in text else text
