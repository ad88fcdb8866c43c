"""HLO amid other lines: pasted into prose, or printed to a log that puts something in front of its lines.

A line that is left out leaves an empty one behind, so that what remains keeps the numbers of its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hlotool.dump.quoted import Lines, Quotation
from hlotool.dump.sections import end_of_hlo

#: The line with which a module begins, whatever stands in front of it; no log writes longer prefixes. In a
#: sentence no attribute follows the comma.
_HEADER = re.compile(
    r"^(?P<prefix>[^\n]{0,300}?)(?P<header>HloModule[ \t]+%?[^\s,{]+(?:,[ \t]*\w*(?:=[^\n]*)?)?)[ \t\r]*$",
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
#: The first line of a computation, and that of the entry.
_OPENING = re.compile(r"^[ \t]*(?:ENTRY[ \t]+)?%?[\w.~-]+[ \t]*(?:\([^\n]*->[^\n]*)?\{[ \t]*$", re.MULTILINE)
_ENTRY = re.compile(r"^[ \t]*ENTRY[ \t][^\n]*\{[ \t]*$", re.MULTILINE)
#: What shows, below a HloModule line, that it is none in a sentence.
_BODY = re.compile(
    r"^[ \t\r\f\v]*(?:ENTRY\b|FileNames|(?:ROOT\s+)?%?[\w.~-]+ (?:= |\{|\([^\n]*->))", re.MULTILINE
)
#: How many lines below it are looked at for that, and how long the first may be.
_LOOKED_AT, _LONGEST = 20, 1 << 12


def modules_amid_lines(text: str) -> Iterator[Quotation]:
    """The modules that begin with a HloModule line somewhere in `text`."""
    headers = list(_HEADER.finditer(text))
    counted = Lines(text)
    for number, header in enumerate(headers):
        lines = text[header.end() + 1 : _stop(text, header, headers[number + 1 :][:_STREAMS])].split("\n")
        below = unprefixed(header["prefix"], lines)
        start = "\n".join(below[:_LOOKED_AT])
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
