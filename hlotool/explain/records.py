"""What `hlotool explain` finds, as plain records."""

from __future__ import annotations

import msgspec

from hlotool.dump.records import Dump
from hlotool.explain.entries import Entry
from hlotool.explain.locate import PlaceRecord, locate
from hlotool.explain.recognize import Recognition, recognize
from hlotool.findings.records import Record


class MatchRecord(Record, frozen=True, kw_only=True):
    """A known message.

    Attributes:
        id: of the catalogue's entry; XLA's error code where it has one.
        title: what is wrong.
        cause: why it happens.
        remedy: what to do, the most likely first.
        reference: page of the official documentation; empty when there is none.
        line: of the text where it stands first; 0 when the entry was asked for by name.
        lines: all lines where it begins.
        message: as printed there.
        fields: what the message names: instructions, shapes, sizes.
        places: where its instructions stand in the dump.
    """

    id: str
    title: str
    cause: str
    remedy: list[str]
    reference: str = ""
    line: int = 0
    lines: list[int] = []
    message: str = ""
    fields: dict[str, str] = {}
    places: list[PlaceRecord] = []


def explain_text(text: str, dump: Dump | None = None) -> list[MatchRecord]:
    """What `text` contains of the catalogue, with the instructions of `dump` that it names."""
    return [_match(found, dump) for found in recognize(text)]


def entry_record(entry: Entry) -> MatchRecord:
    """An entry that was asked for by name."""
    return MatchRecord(
        id=entry.id, title=entry.title, cause=entry.cause, remedy=entry.remedy, reference=entry.reference
    )


def _match(found: Recognition, dump: Dump | None) -> MatchRecord:
    return msgspec.structs.replace(
        entry_record(found.entry),
        line=found.line,
        lines=found.lines,
        message=found.excerpt,
        fields=found.fields,
        places=locate(dump, found.instructions) if dump else [],
    )
