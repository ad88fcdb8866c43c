"""Texts that hold several modules: logs, and files with separators.

Three forms are split:
- logs of a run without `--xla_dump_to`, where XLA prints `*** Begin NAME ***` … `*** End NAME ***`;
- files that torch-xla writes for XLA_SAVE_TENSORS_FILE, with `## BEGIN_GRAPH` … `## END_GRAPH`;
- modules separated by `// -----`, as in XLA's own tests, or simply one after the other.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a text.

    Attributes:
        name: file name that the log gives it, or empty.
        start: of its content, in bytes.
        end: of its content, in bytes.
        is_complete: False when the log ends before its end marker.
    """

    name: str
    start: int
    end: int
    is_complete: bool = True


_BEGIN_WORD, _GRAPH_WORD, _SEPARATOR_WORD = b"*** Begin ", b"## BEGIN_GRAPH", b"// -----"
_HEADER_WORD = b"HloModule "
#: What may stand in front of a header: blanks, and the byte order mark of the file.
_BLANKS = b" \t\xef\xbb\xbf"
_BEGIN = re.compile(rb"\*\*\* Begin (?P<name>.+?) \*\*\*\r?\n")
_GRAPH = re.compile(rb"## BEGIN_GRAPH\r?\n(?P<content>.*?)(?=^## END_GRAPH|\Z)", re.MULTILINE | re.DOTALL)
#: Before the first word of a line. Never blank lines, too: from each of many to their end takes for ever.
_INDENT = rb"^[ \t\r\f\v]*"
_HLO_LINE = re.compile(
    _INDENT + rb"(?:HloModule\s+\S|ENTRY\s+(?:%?[\w.~-]+\s*)?[({]|(?:ROOT\s+)?%?[\w.-]+\s*=\s*\(?\w+\["
    # Graphs of PyTorch/XLA have its types, too.
    rb"(?![^\n(]{0,80}\b(?:prim|aten)::))",
    re.MULTILINE,
)


_COMMENTS = rb"(?:\xef\xbb\xbf)?(?>(?:\s|//[^\n]*+|/\*(?>(?:[^*]|\*(?!/))*)\*/)*)"
#: Nothing but comments stands before HLO: a header, an entry, an instruction, another computation.
_PLAIN = re.compile(
    _COMMENTS + rb"(?:HloModule\s|ENTRY\s|(?:ROOT\s+)?%?[\w.-]+\s*=\s*\(?\w+\["
    rb"|%[\w.~-]+\s*\{|%?[\w.~-]+\s*\((?:(?!HloModule )[^\n])*->[^\n]*\{)"
)


#: A computation with a signature, which XLA reads only below a HloModule line.
_HEADLESS = re.compile(_COMMENTS + rb"%?[\w.~-]+\s*\((?:(?!HloModule )[^\n])*->[^\n]*\{")


#: A computation without any sign that only HLO has; an entry has to follow.
_BARE = re.compile(_COMMENTS + rb"[\w.~-]+\s*\{\s*\n")
_ENTRY = re.compile(_INDENT + rb"ENTRY\s", re.MULTILINE)


def is_bare(text: bytes) -> bool:
    """Whether `text` begins with a computation and has an entry: enough for what is quoted as a whole."""
    return _BARE.match(text) is not None and _ENTRY.search(text) is not None and looks_like_hlo(text)


def is_plain(text: bytes) -> bool:
    """Whether `text` begins as HLO does, so that nothing has to be searched for."""
    return _PLAIN.match(text) is not None or next(_line_starts(text, _GRAPH_WORD), None) is not None


def is_headless(text: bytes) -> bool:
    """Whether the HloModule line is missing that XLA's reader needs in front of such a text."""
    return _HEADLESS.match(text) is not None


def looks_like_hlo(text: bytes, start: int = 0, end: int = sys.maxsize) -> bool:
    """Whether `text` holds a line that only HLO text has: a header, an entry, or an instruction."""
    return _HLO_LINE.search(text, start, end) is not None


def _line_starts(
    text: bytes, word: bytes, start: int = 0, end: int = sys.maxsize, blanks: bytes = b""
) -> Iterator[int]:
    """Where a line begins with `word`; texts are long, and a search for bytes is faster than a pattern.

    Some of `blanks` may stand in front of it.
    """
    at = text.find(word, start, end)
    while at >= 0:
        before = at
        while before > start and text[before - 1] in blanks:
            before -= 1
        if before == 0 or text[before - 1] == 0x0A:
            yield at
        at = text.find(word, at + 1, end)


def split_log(text: bytes) -> list[Section]:
    """The blocks that XLA printed to a log, in order; empty when there is none."""
    found = (_BEGIN.match(text, at) for at in _line_starts(text, _BEGIN_WORD))
    begins = [begin for begin in found if begin]
    stops = [b.start() for b in begins[1:]] + [len(text)]
    return [_block(text, begin, stop) for begin, stop in zip(begins, stops)]


def _block(text: bytes, begin: re.Match[bytes], stop: int) -> Section:
    """The block that `begin` opens; it ends before its end marker or the next block, whichever is first."""
    name = begin["name"]
    end = text.find(b"*** End " + name + b" ***", begin.end(), stop)
    shown = name.decode("utf-8", errors="backslashreplace")
    return Section(shown, begin.end(), end if end >= 0 else stop, is_complete=end >= 0)


def split_modules(text: bytes) -> list[Section]:
    """The parts of `text` that hold HLO; one section for an ordinary file, none when nothing is HLO."""
    graphs = [_GRAPH.match(text, at) for at in _line_starts(text, _GRAPH_WORD)]
    spans = [graph.span("content") for graph in graphs if graph] or _cut_at_headers(text)
    found = ((start, end) for start, end in spans if looks_like_hlo(text, start, end))
    return [Section("", start, end_of_hlo(text, start, end)) for start, end in found]


def _cut_at_headers(text: bytes) -> Iterator[tuple[int, int]]:
    """The text cut at `// -----` lines, and before every HloModule line but the first between these."""
    for start, end in _separated(text):
        headers = list(_line_starts(text, _HEADER_WORD, start, end, blanks=_BLANKS))
        yield from itertools.pairwise([start, *headers[1:], end])


def _separated(text: bytes) -> Iterator[tuple[int, int]]:
    """What stands between the `// -----` lines."""
    start = 0
    for separator in _line_starts(text, _SEPARATOR_WORD):
        yield start, separator
        start = text.find(b"\n", separator)
        if start < 0:
            return
    yield start, len(text)


_LAST_LINE = re.compile(rb"[ \t]*\}.*|.*(?:=|->|ENTRY).*\}[ \t\r]*")
_OPENING_LINE = re.compile(rb"\{[ \t\r]*$", re.MULTILINE)


def end_of_hlo(text: bytes, start: int, end: int) -> int:
    """Where HLO ends that begins at `start`: behind its last computation, unless more HLO may follow."""
    at = text.rfind(b"}", start, end)
    while at >= 0:
        line, stop = text.rfind(b"\n", start, at) + 1, text.find(b"\n", at, end) + 1
        stop = stop or end
        if _LAST_LINE.fullmatch(text, max(line, start), stop - text.endswith(b"\n", line, stop)):
            is_hlo = looks_like_hlo(text, stop, end) or _OPENING_LINE.search(text, stop, end) is not None
            return end if is_hlo else stop
        at = text.rfind(b"}", start, line)
    return end
