"""HLO behind prefixes of lines: printed to a log, pasted into prose, in the output of `diff`.

A line that is left out leaves an empty one behind, so that what remains keeps the numbers of its lines. Of
a diff there is what was before, and what is there now.

What stands in front of every line of a text that quotes HLO in turn (a source file in a log) is a margin:
it goes for good, so that what is below it is looked at as if it had never been there. A program that is
nothing but prefixed may lie in several streams of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from hlotool.sources.quoted import Lines, Quotation, is_page
from hlotool.sources.sections import ENTRY, OPENING, end_of_hlo

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
#: What R's knitr and reprex write in front of what a session prints; the other lines are its input.
_PRINTED = re.escape("#>")
#: So few lines that begin alike are a coincidence.
_FEWEST = 3
_CLOSING = {")": "(", "]": "[", "}": "{"}


class _Margin(Struct, frozen=True):
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
    is_few = len(at) < _SHARE * (len(at) + len(others)) and margin.own.pattern != _PRINTED
    if is_few or any(map(_ANCHOR.search, others)):
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


#: The line with which a module begins, whatever stands in front of it; no log writes longer prefixes. In a
#: sentence no attribute follows the comma.
_HEADER = re.compile(
    r"^(?P<prefix>[^\n]{0,300}?)"
    r"(?P<header>HloModule[ \t]+%?(?=[\w\"<])[^\s,{]+(?:,[ \t]*\w*(?:=[^\n]*)?)?)[ \t\r]*$",
    re.MULTILINE,
)
_BLOCK = re.compile(r"^(?P<prefix>[^\n]{1,300}?)\*\*\* Begin [^\n]+ \*\*\*\r?$", re.MULTILINE)
#: What changes from line to line in the prefixes of one log: days and times. Numbers of threads, processes
#: and ranks do not: they tell whose line it is.
_CHANGING = re.compile(r"[IWEFDV]\d{4}(?=\s)|\d{4}[-/]\d\d[-/]\d\d|\d{1,20}:\d\d:[\d:.,]+|\d{1,20}\.\d+|\s+")
#: What counts lines: the last number of a prefix. `grep` writes another mark behind those that do not match.
_NUMBERED = re.compile(r"(?P<before>.*?)(?P<mark>[:-]?)\s*\d+(?P<behind>\D*)", re.DOTALL)
#: How many streams of lines may alternate in one log.
_STREAMS = 64
#: Other messages of absl's and TensorFlow's loggers.
_MESSAGE = re.compile(r"(?:[IWEF]\d{4}|\d{4}-\d\d-\d\d) [\d:.]+[\d: ]*\S* [^\s\]]+:\d+\]")
_MESSAGE_LINE = re.compile(rb"\n(?:[IWEF]\d{4}|\d{4}-\d\d-\d\d) \d\d:\d\d:\d\d\.\d+[^\n]*:\d+\] ")
#: What stands in for a missing header.
_MADE_HEADER = "HloModule unnamed"
_OPENING, _ENTRY = (re.compile(one, re.MULTILINE) for one in (OPENING, ENTRY))
#: What shows, below a HloModule line, that it is none in a sentence.
_BODY = re.compile(
    r"^[ \t\r\f\v]*(?:ENTRY\b|FileNames|(?:ROOT\s+)?%?[\w.~-]+ (?:= |\{|\([^\n]*->))", re.MULTILINE
)
#: How many lines below it are looked at for that, and how long the first may be.
_PREFIXED_LOOKED_AT, _LONGEST = 20, 1 << 12


def modules_amid_lines(text: str) -> Iterator[Quotation]:
    """The modules that begin with a HloModule line somewhere in `text`."""
    headers = list(_HEADER.finditer(text))
    counted = Lines(text)
    for number, header in enumerate(headers):
        lines = text[header.end() + 1 : _stop(text, header, headers[number + 1 :][:_STREAMS])].split("\n")
        below = unprefixed(header["prefix"], lines)
        start = "\n".join(below[:_PREFIXED_LOOKED_AT])
        body, other = _BODY.search(start), _HEADER.search(start)
        # A header right below is the program's own, and this one is spoken of in a sentence or a comment.
        if body is not None and (other is None or other.start() > body.start()):
            module = "\n".join([header["header"], *below])
            yield Quotation(counted.before(header.start()), without_tail(module))
    if not headers:
        yield from _without_header(text)


def _stop(text: str, header: re.Match[str], later: Sequence[re.Match[str]]) -> int:
    """Where the lines of a module end at the latest: other streams' modules may begin before that."""
    own = _like(header["prefix"]) if header["prefix"].strip() else None
    below = text[header.end() : header.end() + _LONGEST].lstrip()
    if own is not None and _BODY.match(below) is not None:
        own = None  # the first line of a message of several ones
    following = (found for found in later if own is None or own.match(found[0]))
    end = next(following, later[-1] if len(later) == _STREAMS else None)
    return end.start() if end is not None else len(text)


def blocks_unprefixed(text: str) -> str:
    """A log of `*** Begin NAME ***` blocks without the prefixes of its lines; empty where it has neither."""
    found = _BLOCK.search(text)
    return "\n".join(unprefixed(found["prefix"], text.split("\n"))) if found is not None else ""


def unprefixed(prefix: str, lines: Sequence[str], body: re.Pattern[str] = _BODY) -> list[str]:
    """Lines of a log without their prefixes.

    Args:
        prefix: of a first line, before these.
        lines: where all have such prefixes, those without one belong to others; where the first has none,
            those with one do.
        body: what a line without prefix may look like.

    Returns:
        as many lines, empty ones in the place of others' lines.
    """
    if not prefix.strip():
        return ["" if _MESSAGE.match(line) else line for line in lines]
    following = [line for line in lines[: 4 * _STREAMS] if line.strip()][:_STREAMS]
    own = next((like for like in _ways(prefix) if any(map(like.match, following))), None)
    if own is None or not _is_everywhere(own, following, body):
        own = _like(prefix)
        return ["" if own.match(line) or _MESSAGE.match(line) else line for line in lines]
    return [line[found.end() :] if (found := own.match(line)) else "" for line in lines]


def _ways(prefix: str) -> Iterator[re.Pattern[str]]:
    """What the prefixes of other lines may look like."""
    yield _like(prefix)
    if (number := _NUMBERED.fullmatch(prefix.rstrip())) is not None:
        before, mark, behind = number["before"], number["mark"], number["behind"]
        start = _pattern(before) + ("[:-]" if mark else "")
        end = "[:-]" if behind in (":", "-") else _pattern(behind)
        yield re.compile(rf"{start}\s*\d+{end}[ \t]?")
    if len(words := prefix.split()) > 1:
        # A message of several lines: pytest has its mark before each, the name of an error before the first.
        yield _like(words[0])


def _is_everywhere(own: re.Pattern[str], following: Sequence[str], body: re.Pattern[str]) -> bool:
    """Whether every line has a prefix, its own or that of another stream; plain HLO would have none."""
    return own.match(following[0]) is not None or not any(body.match(line) for line in following)


def _like(prefix: str) -> re.Pattern[str]:
    """The prefixes of the lines of one log."""
    prefix = prefix.rstrip()
    whole = r"(?!\w)" if prefix[-1].isalnum() else ""
    return re.compile(rf"{_pattern(prefix)}{whole}[ \t]?")


def _pattern(prefix: str) -> str:
    """What matches `prefix` with other times, and blanks of other widths."""
    pattern, at = "", 0
    for found in _CHANGING.finditer(prefix):
        changing = r"\s+" if found[0].isspace() else re.sub(r"\d+", r"\\d+", re.escape(found[0]))
        pattern += re.escape(prefix[at : found.start()]) + re.sub(r"^(?:\\\s)+", r"\\s*", changing)
        at = found.end()
    return pattern + re.escape(prefix[at:])


def _without_header(text: str) -> Iterator[Quotation]:
    """A program of which the HloModule line was left out, from its first computation on, with such a line."""
    if "HloModule" in text or (opening := _OPENING.search(text)) is None or _ENTRY.search(text) is None:
        return
    program = without_tail(text[opening.start() :].lstrip())
    yield Quotation(Lines(text).before(opening.start()), f"{_MADE_HEADER} {program}")


def has_messages(content: bytes) -> bool:
    """Whether messages of absl's or TensorFlow's loggers stand between the lines of a text."""
    return _MESSAGE_LINE.search(content) is not None


def without_tail(text: str) -> str:
    """`text` without the lines behind its last computation, unless they may be HLO that was cut short."""
    content = text.encode("utf-8", "surrogateescape")
    return content[: end_of_hlo(content, 0, len(content))].decode("utf-8", "surrogateescape")
