"""Texts that hold several modules: logs, and files with separators.

Three forms are split:
- logs of a run without `--xla_dump_to`, where XLA prints `*** Begin NAME ***` … `*** End NAME ***`;
- files that torch-xla writes for XLA_SAVE_TENSORS_FILE, with `## BEGIN_GRAPH` … `## END_GRAPH`;
- modules separated by `// -----`, as in XLA's own tests, or simply one after the other.
"""

from __future__ import annotations

import itertools
import re
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


_BEGIN = re.compile(rb"^\*\*\* Begin (?P<name>.+?) \*\*\*\r?\n", re.MULTILINE)
_GRAPH = re.compile(rb"^## BEGIN_GRAPH\r?\n(?P<content>.*?)(?=^## END_GRAPH|\Z)", re.MULTILINE | re.DOTALL)
_SEPARATOR = re.compile(rb"^// -----.*$", re.MULTILINE)
_HEADER = re.compile(rb"^HloModule[ \t]", re.MULTILINE)
_HLO_LINE = re.compile(
    rb"^\s*(?:HloModule\s+\S|ENTRY\s+(?:%?[\w.~-]+\s*)?[({]|(?:ROOT\s+)?%?[\w.-]+\s*=\s*\(?\w+\[)",
    re.MULTILINE,
)


def looks_like_hlo(text: bytes) -> bool:
    """Whether `text` holds a line that only HLO text has: a header, an entry, or an instruction."""
    return _HLO_LINE.search(text) is not None


def split_log(text: bytes) -> list[Section]:
    """The blocks that XLA printed to a log, in order; empty when there is none."""
    begins = list(_BEGIN.finditer(text))
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
    if graphs := list(_GRAPH.finditer(text)):
        return [Section("", *graph.span("content")) for graph in graphs if looks_like_hlo(graph["content"])]
    parts = (part for span in _separated(text) for part in _at_headers(text, *span))
    return [Section("", start, end) for start, end in parts if looks_like_hlo(text[start:end])]


def _separated(text: bytes) -> Iterator[tuple[int, int]]:
    """What stands between the `// -----` lines."""
    start = 0
    for separator in _SEPARATOR.finditer(text):
        yield start, separator.start()
        start = separator.end()
    yield start, len(text)


def _at_headers(text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The text cut before every HloModule line but the first."""
    headers = [header.start() for header in _HEADER.finditer(text, start, end)]
    cuts = [start, *headers[1:], end]
    yield from itertools.pairwise(cuts)
