"""HLO and StableHLO inside of other texts: documents, programs, notebooks, logs.

Each form has its reader, and the first that finds something is believed. A text may be wrapped several times:
a program in a fence in a cell of a notebook.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hlotool.dump.mlir import is_mlir
from hlotool.dump.prefixed import blocks_unprefixed, modules_amid_lines
from hlotool.dump.quoted import Quotation, fenced, literals, preformatted
from hlotool.dump.sections import is_bare, is_plain, split_log, split_modules

#: How often a text may be wrapped.
_DEEPEST = 4
#: Where the records of a log have their text.
_MESSAGE_KEYS = ("message", "msg", "log", "textPayload", "text")
#: Only a text with one of these words is looked at more closely.
_CERTAIN = re.compile(r"HloModule\b|ENTRY\b|func\.func\b")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A program inside of another text.

    Attributes:
        line: how many lines of the outer text stand before it; 0 where the form has no lines.
        content: its text.
        name: of a file, where a log gives it; else empty.
        is_complete: False when the log ends before the end of that file.
    """

    line: int
    content: bytes
    name: str = ""
    is_complete: bool = True

    def read(self) -> bytes:
        """The text behind as many line ends as stand before it, so that errors name the lines of the file."""
        return b"\n" * self.line + self.content


def wrapped_texts(content: bytes) -> tuple[Wrapped, ...]:
    """The programs inside of `content`, each once; none where nothing is wrapped."""
    text = content.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n")
    found = {(one.name, one.content): one for one in reversed(list(_programs(text, 0, _DEEPEST)))}
    return tuple(reversed(found.values()))


def _programs(text: str, line: int, depth: int) -> Iterator[Wrapped]:
    """What is wrapped in `text`, before which `line` lines stand."""
    if not depth or _CERTAIN.search(text) is None:
        return
    if blocks := blocks_unprefixed(text):
        plain = _bytes(blocks)
        for block in split_log(plain):
            before = plain.count(b"\n", 0, block.start)
            yield Wrapped(before, plain[block.start : block.end], block.name, block.is_complete)
        return
    for form in (_of_json, fenced, preformatted, literals):
        found = [one for quoted in form(text) for one in _quoted(quoted, line, depth)]
        if found:
            yield from found
            return
    for module in modules_amid_lines(text):
        yield Wrapped(line + module.line, _bytes(module.text))


def _quoted(quoted: Quotation, line: int, depth: int) -> Iterator[Wrapped]:
    """The programs of a text that was quoted below `line` lines."""
    if _CERTAIN.search(quoted.text) is None:
        return
    content = _bytes(quoted.text)
    if is_mlir(content):
        yield Wrapped(line + quoted.line, content)
    elif is_plain(content) or is_bare(content):
        for part in split_modules(content):
            before = line + quoted.line + content.count(b"\n", 0, part.start)
            yield Wrapped(before, content[part.start : part.end])
    else:
        yield from _programs(quoted.text, line + quoted.line, depth - 1)


def _of_json(text: str) -> Iterator[Quotation]:
    """The texts in a notebook or another JSON document, or in a log of JSON records, one to a line."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        values = [json.loads(text)]
    except (ValueError, RecursionError):
        yield from _of_records(text)
        return
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield Quotation(0, value)
        elif isinstance(value, dict):
            values += reversed(value.values())
        elif isinstance(value, list):
            values += [_joined(value)] if value and _are_texts(value) else reversed(value)


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _joined(lines: list[str]) -> str:
    """A text as notebooks keep it: its lines, each but the last with its end."""
    return "".join(lines) if all(line.endswith("\n") for line in lines[:-1]) else "\n".join(lines)


def _of_records(text: str) -> Iterator[Quotation]:
    """The messages of a log of JSON records as one text."""
    messages: list[str] = []
    for line in filter(str.strip, text.split("\n")):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        said = [record[key] for key in _MESSAGE_KEYS if key in record] if isinstance(record, dict) else []
        messages += [one for one in said[:1] if isinstance(one, str)]
    yield Quotation(0, "\n".join(messages))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
