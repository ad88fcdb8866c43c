"""HLO in the fields of data: JSON documents and notebooks, logs of records, tables, mails."""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hlotool.dump.quoted import Quotation, joined

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
