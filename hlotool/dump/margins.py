"""What stands in front of every line of a text that quotes HLO in turn: a source file in a log.

A program that is nothing but prefixed is read by `prefixed`, which knows several streams of lines. Here the
prefix goes for good, so that what is below it is looked at as if it had never been there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlotool.dump.markup import is_page
from hlotool.dump.quoted import Quotation

#: A line that a program has in whatever it is wrapped.
_ANCHOR = re.compile(r"(?:\bHloModule|\bENTRY|\bfunc\.func)\b")
#: Times, which change from line to line, numbers, blanks, words, and any other character.
_TOKEN = re.compile(
    r"(?P<time>\d{4}[-/]\d\d[-/]\d\d|\d{1,20}(?::\d\d){1,2}[\d.,]*|[ \t]*\d{1,20}\.\d+|[ \t]*\d{9,20})"
    r"|(?P<number>[ \t]*\d+)|(?P<blanks>[ \t]+)|[^\W\d]+|."
)
_TAG = re.compile(r"<([a-zA-Z]\w*)")
#: No margin is wider.
_WIDEST = 300
#: How many lines show what the margin is, with how many below each, and how many margins one text may have.
_LOOKED_AT, _BELOW, _MOST = 64, 3, 8
#: Share of the lines in which a margin stands: the others belong to other processes. Where it is smaller,
#: several streams of lines alternate.
_SHARE = 0.8
#: So few lines that begin alike are a coincidence.
_FEWEST = 3
_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class _Margin:
    """What stands in front of lines, and the tags of a page in it."""

    own: re.Pattern[str]
    tags: tuple[str, ...]


def without_margin(text: str) -> Iterator[Quotation]:
    """`text` without the margins of the lines around its programs; nothing where they have none.

    Lines of others amid them are left out.
    """
    if is_page(text):  # whose characters are not yet as they are meant
        return
    lines = text.split("\n")
    stripped = lines
    for margin in _margins(lines):
        if not any(f"</{tag}" in text for tag in margin.tags):
            stripped = _without(margin, stripped)
    if stripped is not lines:
        yield Quotation(0, "\n".join(stripped))


def _margins(lines: Sequence[str]) -> list[_Margin]:
    """The margins of the first lines that only programs have, each once."""
    found: dict[str, _Margin] = {}
    looked_at = 0
    for at, line in enumerate(lines):
        anchor = _ANCHOR.search(line, 0, _WIDEST)
        if anchor is None:
            continue
        looked_at += 1
        below = (_common(line[: anchor.start()], one[:_WIDEST]) for one in lines[at + 1 : at + 1 + _BELOW])
        own = min(filter(None, below), key=_numbers, default=None)
        if own is not None:
            found[own.own.pattern] = own
        if looked_at == _LOOKED_AT or len(found) == _MOST:
            break
    return sorted(found.values(), key=_numbers)


def _numbers(margin: _Margin) -> int:
    """How many numbers count. Where the line below is another process's, its own is one of them."""
    return margin.own.pattern.count(r"\d+")


def _common(line: str, below: str) -> _Margin | None:
    """What two lines have in front, times and numbers that count apart."""
    found: list[tuple[str, str]] = []
    brackets: list[str] = []
    balanced = 0
    for one, other in zip(_TOKEN.finditer(line), _TOKEN.finditer(below)):
        pattern, is_last = _alike(one, other)
        if not pattern:
            break
        found.append((one[0], pattern))
        _count(one[0], brackets)
        if not brackets:
            balanced = len(found)
        if is_last:
            break
    found = found[:balanced]
    text = "".join(token for token, _ in found)
    if not text.strip():
        return None
    if found[-1][0].isspace():  # how many of these are the line's own, all lines tell
        found.pop()
    return _Margin(re.compile("".join(pattern for _, pattern in found)), tuple(_TAG.findall(text)))


def _alike(one: re.Match[str], other: re.Match[str]) -> tuple[str, bool]:
    """What matches two tokens, empty where they differ, and whether they can be the last ones only."""
    token, below = one[0], other[0]
    if one.lastgroup in ("time", "number") and one.lastgroup == other.lastgroup:
        token, below = token.strip(" \t"), below.strip(" \t")
        if one.lastgroup == "number" and token == below:
            return r"[ \t]*" + token, False
        is_counting = re.sub(r"\d+", "", token) == re.sub(r"\d+", "", below)
        return (r"[ \t]*" + re.sub(r"\d+", r"\\d+", re.escape(token)) if is_counting else ""), False
    if token == below:
        return re.escape(token), False
    if token in ":-" and below in ":-":  # `grep` marks lines that match
        return "[:-]", False
    shorter, longer = sorted((token, below), key=len)
    is_indented = one.lastgroup == other.lastgroup == "blanks" and longer.startswith(shorter)
    return (re.escape(shorter) if is_indented else ""), True


def _count(token: str, brackets: list[str]) -> None:
    """Keep account of brackets and quotation marks that are open: what they enclose is no margin."""
    if brackets and brackets[-1] == "\\":
        brackets.pop()
    elif brackets and brackets[-1] in "\"'`":
        if token == brackets[-1]:
            brackets.pop()
        elif token == "\\":  # the next one means itself
            brackets.append(token)
    elif token in ("(", "[", "{", '"', "'", "`"):
        brackets.append(token)
    elif brackets and brackets[-1] == _CLOSING.get(token):
        brackets.pop()


def _without(margin: _Margin, lines: list[str]) -> list[str]:
    """Lines without a margin; the same ones where it is in front of a few of them by chance."""
    found = [margin.own.match(line) for line in lines]
    at = [number for number, match in enumerate(found) if match is not None]
    if len(at) < _FEWEST:
        return lines
    within = range(at[0], at[-1] + 1)
    others = [lines[number] for number in within if found[number] is None and lines[number].strip()]
    if len(at) < _SHARE * (len(at) + len(others)) or any(map(_ANCHOR.search, others)):
        return lines
    stripped = list(lines)
    for number in within:
        match = found[number]
        stripped[number] = lines[number][match.end() :].rstrip("\r") if match is not None else ""
    indents = (
        len(one) - len(one.lstrip(" \t")) for one in (stripped[number] for number in at) if one.strip()
    )
    depth = min(indents, default=0)
    for number in at:
        stripped[number] = stripped[number][depth:]
    return stripped
