"""HLO quoted in other formats: Markdown, string literals, HTML, XML, JSON, notebooks, tables, mails.

All of it is found from front to back by what opens it; what never closes is passed over. Of pages the
characters and tags are taken away.
"""

from __future__ import annotations

import contextlib
import csv
import html
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct


class Quotation(Struct, frozen=True):
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


#: An ordinary literal: of C's kind, or of Python's in single quotes, which is what its `repr` prints.
_ORDINARY = (
    r"""(?:"[^"\\\n]*+(?>(?:\\.[^"\\\n]*+)*)"|(?<!\w)[bBuUfF]{0,2}'[^'\\\n]*+(?>(?:\\.[^'\\\n]*+)*)')"""
)
#: What opens a literal, or hides what looks like one: raw strings of C++ and R, Python's long ones, Rust's,
#: OCaml's, those in backticks (JavaScript, Go), ordinary ones, of which several may stand in a row, and
#: comments.
_OPENER = re.compile(
    rf"""
      (?:R"|r"(?=-*\([ \t]*\r?\n))(?P<delimiter>[^()\\\s"]{{0,16}})\(
    | (?P<python>[a-zA-Z]{{0,2}})(?P<quotes>\"{{3}}|'{{3}})
    | \bb?r(?P<hashes>\#{{1,8}})"
    | \{{(?P<ocaml>[a-z_]{{0,16}})\|
    | (?P<template>`[^`\\]*+(?>(?:\\.[^`\\]*+)*)`)
    | '(?:\\.|[^'\\\n])'
    | (?P<row>{_ORDINARY}(?>(?:[\s+\\]*+,?[\s+\\]*+{_ORDINARY})*))
    | (?<!:)//[^\n]*+
    | (?P<comment>/\*)
    """,
    re.DOTALL | re.VERBOSE,
)
_PART = re.compile(_ORDINARY, re.DOTALL)
_ESCAPE = re.compile(r"\\(?:(\r?\n)|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r"}
_HEADER = re.compile(r"\s*HloModule\b")


def literals(text: str) -> Iterator[Quotation]:
    """The values of string literals; of ordinary ones those in a row count as one."""
    counted, at = Lines(text), 0
    never: set[str] = set()
    while (opening := _OPENER.search(text, at)) is not None:
        at = opening.end()
        if (closer := _closer(opening)) is None:
            if (template := opening["template"]) is not None:
                yield Quotation(counted.before(opening.start()), _unescaped(template[1:-1]))
            elif (row := opening["row"]) is not None:
                for start, value in _values(row):
                    yield Quotation(counted.before(opening.start() + start), value)
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
    if opening["ocaml"] is not None:
        return f"|{opening['ocaml']}}}"
    return opening["quotes"] or ("*/" if opening["comment"] else None)


def _find(text: str, closer: str, at: int, skips_escaped: bool) -> int:
    """Where `closer` stands from `at` on, -1 for nowhere."""
    end = text.find(closer, at)
    while skips_escaped and end > 0 and text[end - 1] == "\\":
        end = text.find(closer, end + 1)
    return end


def _values(row: str) -> Iterator[tuple[int, str]]:
    """Where they begin, and what ordinary literals in a row mean.

    Side by side they are one text; between commas they are its lines, or programs of their own.
    """
    group: list[str] = []
    start = end = 0
    for part in _PART.finditer(row):
        inside = part[0].lstrip("bBuUfF")[1:-1]
        is_listed = "," in row[end : part.start()]
        if group and is_listed and _HEADER.match(inside) is not None:
            yield start, joined(group)
            group, start = [], part.start()
        if group and not is_listed:
            group[-1] += _unescaped(inside)
        else:
            group.append(_unescaped(inside))
        end = part.end()
    yield start, joined(group)


def joined(lines: Sequence[str]) -> str:
    """A text as a list of lines, each but the last with its end or all of them without."""
    return "".join(lines) if all(line.endswith("\n") for line in lines[:-1]) else "\n".join(lines)


#: A literal of several lines in which a quotation mark is written twice: SQL, YAML, C#, Pascal.
_DOUBLED = re.compile(r"(?P<quote>['\"])(?=HloModule )")


def doubled(text: str) -> Iterator[Quotation]:
    """The values of literals of several lines that begin with a HloModule line and double their quotes."""
    counted, at = Lines(text), 0
    while (opening := _DOUBLED.search(text, at)) is not None:
        quote = opening["quote"]
        closing = re.compile(rf"{quote}(?!{quote})|\Z|{quote}{quote}")
        end = opening.end()
        while (found := closing.search(text, end)) is not None and len(found[0]) == 2:
            end = found.end()
        at = found.end() if found is not None else len(text)
        value = text[opening.end() : at - 1].replace(2 * quote, quote)
        if found is not None and found[0] and "\n" in value:
            yield Quotation(counted.before(opening.end()), value)


#: What follows the HloModule line of a module whose line ends are written as `\\n`.
_NEXT_LINE = re.compile(r"(?:\\r)?\\n\s*+(?:ENTRY\b|FileNames|%?[\w.~-]++ [({])")


def escaped(text: str) -> Iterator[Quotation]:
    """Modules of which the line ends are written as `\\n`, so that they stand in one line."""
    counted, at = Lines(text), 0
    while (start := text.find("HloModule ", at)) >= 0:
        end = text.find("\n", start)
        at = end if end >= 0 else len(text)
        if _NEXT_LINE.search(text, start, at) is not None:
            yield Quotation(counted.before(start), _unescaped(text[start:at]))


def _unescaped(text: str) -> str:
    def value(found: re.Match[str]) -> str:
        continued, byte, code, character = found.groups()
        if continued:
            return ""
        return chr(int(byte or code, 16)) if byte or code else _NAMED.get(character, character)

    return _ESCAPE.sub(value, text) if "\\" in text else text


_PRE = re.compile(r"<(?P<tag>pre|textarea|script)\b[^<>]{0,500}>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,500}>")
_DECLARATION = re.compile(r"<[?!][^<>]{0,500}>")
_PAGE = re.compile(r"\s*<[!?a-zA-Z]")
_DATA, _DATA_END = "<![CDATA[", "]]>"
#: What ends a line of a page: a break, and the end of a row, of a paragraph or of an item.
_LINE_END = re.compile(r"<br\b[^<>]{0,500}>\n?|</(?:tr|p|div|li)\s*>\n?", re.IGNORECASE)
#: What the signature of a program has, where the characters of a page are escaped.
_ARROW = "-&gt;"


def preformatted(text: str) -> Iterator[Quotation]:
    """What stands in `<pre>` and `<textarea>`, its tags taken away and its characters as they are meant.

    What stands in `<script>` is data, which has neither.
    """
    counted, at = Lines(text), 0
    while (opening := _PRE.search(text, at)) is not None:
        tag = opening["tag"]
        end = text.find(f"</{tag}", opening.end())
        at = end if end >= 0 else len(text)
        inside = text[opening.end() : at]
        is_data = tag.lower() == "script"
        yield Quotation(
            counted.before(opening.end()), inside if is_data else html.unescape(_TAG.sub("", inside))
        )


def marked_up(text: str) -> Iterator[Quotation]:
    """The text of a page as it is shown; nothing where `text` is none."""
    if is_escaped(text) or is_page(text):
        shown = _TAG.sub("", _LINE_END.sub("\n", _DECLARATION.sub("", text)))
        yield Quotation(0, html.unescape(shown))


def is_page(text: str) -> bool:
    """Whether `text` is HTML or XML: it begins with a tag, and closes one."""
    return _PAGE.match(text) is not None and "</" in text


def is_escaped(text: str) -> bool:
    """Whether the characters of `text` are written as a page wants them."""
    return _ARROW in text and "->" not in text


def character_data(text: str) -> Iterator[Quotation]:
    """What stands in CDATA sections of XML, where characters mean themselves."""
    counted, at = Lines(text), 0
    while (start := text.find(_DATA, at)) >= 0:
        start += len(_DATA)
        end = text.find(_DATA_END, start)
        at = end if end >= 0 else len(text)
        yield Quotation(counted.before(start), text[start:at])


#: Where the records of a log have their text.
_MESSAGE_KEYS = ("message", "msg", "log", "textPayload", "text", "event")
#: A message among the keys and values of a line, as loggers of Go write them.
_KEYED = re.compile(r'^[^\n]*?\bmsg=(?P<text>"[^"\\\n]*+(?>(?:\\.[^"\\\n]*+)*)"|[^\s"]*)', re.MULTILINE)
_MAIL = re.compile(
    r"(?:From |(?:From|To|Subject|Date|Received|Message-ID|MIME-Version|Return-Path): )", re.IGNORECASE
)
_ENCODED = re.compile(
    r"^Content-Transfer-Encoding: *(?:quoted-printable|base64)", re.MULTILINE | re.IGNORECASE
)


def of_json(text: str) -> Iterator[Quotation]:
    """The texts in a notebook or another JSON document, or in a log of JSON records, one to a line."""
    if text.lstrip()[:1] not in ("{", "["):
        yield from _of_records(text)
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
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            values.append(joined(value))
        elif isinstance(value, list):
            yield Quotation(0, _messages(value))
            values += reversed([_without_message(one) for one in value])


def _of_records(text: str) -> Iterator[Quotation]:
    """The messages of the JSON records in a log as one text; what stands between them is no record."""
    records: list[Any] = []
    for line in text.split("\n"):
        if line.startswith(("{", "[")) and line.rstrip().endswith(("}", "]")):
            with contextlib.suppress(ValueError, RecursionError):
                records.append(json.loads(line))
    if records:
        yield Quotation(0, _messages(records))


def _messages(records: Sequence[Any]) -> str:
    """What records say, one below the other: a log's objects with a message, or the outputs of a terminal."""
    said: list[str] = []
    for record in records:
        match record:
            case dict():
                if (key := _message_key(record)) is not None:
                    said.append(record[key].removesuffix("\n"))
            case [int() | float(), "o", str(output)]:
                said.append(output.replace("\r\n", "\n").removesuffix("\n"))
    return "\n".join(said)


def _message_key(record: dict[str, Any]) -> str | None:
    return next((key for key in _MESSAGE_KEYS if isinstance(record.get(key), str)), None)


def _without_message(value: Any) -> Any:
    if not isinstance(value, dict) or (key := _message_key(value)) is None:
        return value
    return {name: inside for name, inside in value.items() if name != key}


def of_keyed_messages(text: str) -> Iterator[Quotation]:
    """The messages of a log of keys and values: `time=… level=info msg="…"`."""
    found = [message["text"] for message in _KEYED.finditer(text)]
    if len(found) > 1:
        said = [_json_string(one) if one.startswith('"') else one for one in found]
        yield Quotation(0, "\n".join(said))


def _json_string(literal: str) -> str:
    try:
        return str(json.loads(literal))
    except ValueError:
        return literal[1:-1]


def of_table(text: str) -> Iterator[Quotation]:
    """The columns of comma-separated values, each as one text: a log that was exported."""
    if ',"' not in text:
        return
    limit = csv.field_size_limit(len(text) + 1)
    try:
        rows = list(csv.reader(text.splitlines(keepends=True), strict=True))
    except csv.Error:
        return
    finally:
        csv.field_size_limit(limit)
    width = len(rows[0])
    if width < 2 or any(row and len(row) != width for row in rows):
        return
    for column in zip(*filter(None, rows), strict=True):
        yield Quotation(0, "\n".join(cell.removesuffix("\n") for cell in column))


def of_mail(text: str) -> Iterator[Quotation]:
    """The parts of a mail that are encoded for its journey: quoted-printable, base64."""
    if _MAIL.match(text) is None or _ENCODED.search(text) is None:
        return
    import email

    for part in email.message_from_bytes(text.encode("utf-8", "surrogateescape")).walk():
        try:
            content = part.get_payload(decode=True)
        except ValueError:  # characters that its encoding does not have
            continue
        if isinstance(content, bytes):
            yield Quotation(0, content.decode("utf-8", "surrogateescape").replace("\r\n", "\n"))
