"""HLO amid other lines: pasted into prose, or printed to a log that puts something in front of its lines.

A line that is left out leaves an empty one behind, so that what remains keeps the numbers of its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hlotool.dump.quoted import Lines, Quotation
from hlotool.dump.sections import looks_like_hlo

#: The line with which a module begins, whatever stands in front of it.
_HEADER = re.compile(
    r"^(?P<prefix>[^\n]*?)(?P<header>HloModule[ \t]+%?[^\s,{]+(?:,[^\n]*)?)$", re.MULTILINE
)
_BLOCK = re.compile(r"^(?P<prefix>[^\n]+?)\*\*\* Begin [^\n]+ \*\*\*\r?$", re.MULTILINE)
#: What changes from line to line in the prefixes of one log: days, times, numbers of lines. Numbers of threads,
#: processes and ranks do not: they tell whose line it is.
_CHANGING = re.compile(
    r"[IWEFDV]\d{4}(?=\s)|\d{4}[-/]\d\d[-/]\d\d|\d+:\d\d:[\d:.,]+|\d+\.\d+|^\s*\d+(?=[\t:|])|\s+"
)
#: Other messages of absl's and TensorFlow's loggers.
_MESSAGE = re.compile(r"(?:[IWEF]\d{4}|\d{4}-\d\d-\d\d) [\d:.]+[\d: ]*\S* [^\s\]]+:\d+\]")
#: What shows, below a HloModule line, that it is none in a sentence.
_BODY = re.compile(r"^\s*(?:ENTRY\b|FileNames|(?:ROOT\s+)?%?[\w.~-]+ (?:= |\{|\([^\n]*->))", re.MULTILINE)
#: How many lines below it are looked at for that.
_LOOKED_AT = 20
_END = re.compile(r"\}[ \t\r]*$", re.MULTILINE)
_OPENING = re.compile(r"\{[ \t\r]*$", re.MULTILINE)


def modules_amid_lines(text: str) -> Iterator[Quotation]:
    """The modules that begin with a HloModule line somewhere in `text`."""
    headers = list(_HEADER.finditer(text))
    stops = [found.start() for found in headers[1:]] + [len(text)]
    counted = Lines(text)
    for header, stop in zip(headers, stops, strict=True):
        lines = text[header.end() + 1 : stop].split("\n")
        below = unprefixed(header["prefix"], lines)
        if _BODY.search("\n".join(below[:_LOOKED_AT])) is not None:
            module = "\n".join([header["header"], *below])
            yield Quotation(counted.before(header.start()), without_tail(module))


def blocks_unprefixed(text: str) -> str:
    """A log of `*** Begin NAME ***` blocks without the prefixes of its lines; empty where it has neither."""
    found = _BLOCK.search(text)
    return "\n".join(unprefixed(found["prefix"], text.split("\n"))) if found is not None else ""


def unprefixed(prefix: str, lines: Sequence[str]) -> list[str]:
    """Lines of a log without their prefixes.

    Args:
        prefix: of a first line, before these.
        lines: where all have such prefixes, those without one belong to others. Where the first has none, those
            with one belong to others.

    Returns:
        as many lines, empty ones in the place of others' lines.
    """
    if not prefix.strip():
        return ["" if _MESSAGE.match(line) else line for line in lines]
    own = _like(prefix)
    following = next((line for line in lines if line.strip()), "")
    if own.match(following) is None:
        return ["" if own.match(line) or _MESSAGE.match(line) else line for line in lines]
    return [line[found.end() :] if (found := own.match(line)) else "" for line in lines]


def _like(prefix: str) -> re.Pattern[str]:
    """The prefixes of the lines of one log."""
    pattern, at, prefix = "", 0, prefix.rstrip()
    for found in _CHANGING.finditer(prefix):
        changing = r"\s+" if found[0].isspace() else re.sub(r"\d+", r"\\d+", re.escape(found[0]))
        pattern += re.escape(prefix[at : found.start()]) + re.sub(r"^(?:\\\s)+", r"\\s*", changing)
        at = found.end()
    return re.compile(rf"{pattern}{re.escape(prefix[at:])}[ \t]?")


def without_tail(text: str) -> str:
    """`text` without the lines behind its last computation, unless they may be HLO that was cut short."""
    end = max((found.end() for found in _END.finditer(text)), default=len(text))
    tail = text[end:]
    is_hlo = looks_like_hlo(tail.encode("utf-8", "surrogateescape")) or _OPENING.search(tail) is not None
    return text if is_hlo else text[:end] + "\n"
