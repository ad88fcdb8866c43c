"""The catalogue of messages: data in `catalog/*.toml`, compiled to patterns.

A message is written as it is printed, with `{field}` for what differs from one message to the next. The name
of a field says what it matches (see `FIELDS`); a digit after it tells fields of one kind apart. Blanks match
any white space, since logs fold lines.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import msgspec

#: What a field of that name matches. `instruction` is the name of an HLO instruction, with or without `%`.
FIELDS = {
    "instruction": r"%?[\w.\-]+",
    "number": r"\d+",
    "size": r"[\d.]+ ?[KMGTP]?i?B?(?![\w])",
    "shape": r"[^'\s][^'\n]*?",
    "module": r"[\w.\-<>]+",
    "name": r"[^\s`]+",
    "device": r"[\w:/.\-]+",
    "platform": r"\w+",
    "target": r"[\w.$@\-]+",
    "op": r"[\w.]+",
    "word": r"[\w.+\-]+",
    "file": r"[^\s)]+",
    "text": r"[^\n]*?",
}

_AT_END = {"text": r"[^\n]*", "shape": r"\S*[^\s.]"}

_FIELD = re.compile(r"\{([a-z]+)(\d*)\}")
#: A field that is one kind of character, repeated.
_REPEATED = re.compile(r"(\[[^\]]+\]|\\\w)\+")
_CODE = re.compile(r"[EC]\d{4}")


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that goes wrong.

    Attributes:
        id: stable name; XLA's error code where it has one.
        title: what is wrong, in one clause.
        messages: how it is printed, in several versions.
        cause: why it happens.
        remedy: what to do, the most likely first.
        name: of the error code.
        generic: it only names a class of errors: anything more specific on the same line wins.
        reference: page of the official documentation.
    """

    id: str
    title: str
    messages: list[str]
    cause: str
    remedy: list[str]
    name: str = ""
    generic: bool = False
    reference: str = ""

    @property
    def is_code(self) -> bool:
        """It has a number of XLA's list."""
        return bool(_CODE.fullmatch(self.id))

    def patterns(self) -> Iterator[re.Pattern[str]]:
        """One for each message, and one for the code."""
        yield from _patterns(self.id, self.name, tuple(self.messages))


@cache
def _patterns(code: str, name: str, messages: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    found = [re.compile(template_pattern(message)) for message in messages]
    if _CODE.fullmatch(code):
        # Never the number alone: log lines begin with E, month and day.
        page = rf"errors/(?:error_|{code[0].lower()}){code[1:]}\b"
        found.append(re.compile(rf"\b{code}: {name}\b|{page}" if name else page))
    return tuple(found)


def template_pattern(message: str) -> str:
    """The regular expression of a message template."""
    parts: list[str] = []
    position = 0
    for match in _FIELD.finditer(message):
        parts.append(_literal(message[position : match.start()]))
        parts.append(f"(?P<{match[1]}{match[2]}>{_kind(match[1], match.end() == len(message))})")
        position = match.end()
    parts.append(_literal(message[position:]))
    return _lookbehind(message) + "".join(parts)


def _lookbehind(message: str) -> str:
    """What keeps a field at the beginning from being tried at every place within one long word."""
    first = _FIELD.match(message)
    characters = _REPEATED.fullmatch(FIELDS[first[1]]) if first else None
    return f"(?<!{characters[1]})" if characters else ""


def _kind(name: str, is_last: bool) -> str:
    """What the field matches: where nothing comes after it, text takes the line and a shape the word."""
    return _AT_END.get(name, FIELDS[name]) if is_last else FIELDS[name]


def _literal(text: str) -> str:
    return re.sub(r"(?:\\ )+", r"\\s+", re.escape(text))


@cache
def catalogue() -> tuple[Entry, ...]:
    """All entries, in the order of their files."""

    class File(msgspec.Struct, forbid_unknown_fields=True):
        entry: list[Entry]

    folder = files("hlotool.explain") / "catalog"
    found: list[Entry] = []
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".toml"):
            found += msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), File).entry
    return tuple(found)


def find_entry(text: str) -> Entry | None:
    """The entry that `text` names: its id, its name, or a bare number such as `1200`."""
    wanted = text.strip().lower()
    for entry in catalogue():
        names = {entry.id.lower(), entry.name.lower()} | ({entry.id[1:]} if entry.is_code else set())
        if wanted and wanted in names:
            return entry
    return None
