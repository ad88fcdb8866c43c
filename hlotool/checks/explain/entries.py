"""The catalogue of messages of XLA and its frontends.

It is data in `catalog/*.toml`, compiled to patterns. A message is written as it is printed, with
`{field}` for what differs from one message to the next. The name of a field says what it matches (see
`FIELDS`); a digit after it tells fields of one kind apart. Blanks match any white space, since logs fold
lines.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

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
    "mlir": r"[a-z]\w*(?:\.\w+)+",
    "word": r"[\w.+\-]+",
    "file": r"[^\s)]+",
    #: Of C++: a call, alone or compared.
    "condition": r"!?(?:\w+(?:::|\.|->))+\w+\([^\n]*",
    #: What older versions print before a status in ordinary words.
    "before": r"(?:\b(?:\w*Error|[Ss]tatus)|\(\d+\)|\.cc:\d+ |== OK\(\))[:)]? \(?",
    #: The beginning of a log line of level E or F, up to the name of the file that wrote it.
    "error": r"(?:^|: )[EF](?:\d{4} [\d:.]+ +\d+)? [\w/.\-]*?",
    #: Of a word.
    "start": r"(?<!\w)",
    #: A condition of C++ with what it compares.
    "comparison": r"\w+(?:\.|->)\w+\(\) (?:[=!<>]=|[<>]) [^\n]*",
    #: A warning as loggers of Python print it.
    "warning": r"\bW(?:ARN(?:ING)?|arning)\b",
    "quoted": r"[^'\n]+",
    "text": r"[^\n]*?",
    #: The rest of a line that has no type without an XLA form.
    "numeric": r"(?:(?!DT_(?:STRING|VARIANT|RESOURCE))[^\n])*$",
}

_AT_END = {"text": r"[^\n]*", "shape": r"\S*[^\s.]"}

#: Of a message, and of the titles of forms.
FIELD = re.compile(r"\{([a-z]+)(\d*)\}")
#: A field that is one kind of character, repeated.
_REPEATED = re.compile(r"(\[[^\]]+\]|\\\w)\+")
#: A number of XLA's list.
CODE = re.compile(r"[EC]\d{4}")


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that goes wrong.

    Attributes:
        id: stable name; XLA's error code where it has one.
        title: what is wrong, in one clause.
        messages: how it is printed, in several versions.
        cause: why it happens.
        remedy: what to do, the most likely first.
        name: of the error code.
        generic: it only names a class of errors: anything more specific on its line or the next two wins.
        vague: a class that says so little that the form of the message says more.
        consequence: it only says that something else failed: not told beside that.
        note: the program goes on: told behind what it does not survive.
        reference: page of the official documentation.
    """

    id: str
    title: str
    messages: list[str]
    cause: str
    remedy: list[str]
    name: str = ""
    generic: bool = False
    vague: bool = False
    consequence: bool = False
    note: bool = False
    reference: str = ""

    @property
    def is_code(self) -> bool:
        """It has a number of XLA's list."""
        return bool(CODE.fullmatch(self.id))

    @property
    def is_form(self) -> bool:
        """It is no message, but a general form that messages have."""
        return self.id.startswith("form-")

    def templates(self) -> tuple[Template, ...]:
        """One for each message, and those of the code."""
        return _templates(self.id, self.name, tuple(self.messages))


@dataclass(frozen=True, slots=True)
class Template:
    """One wording of a message.

    Attributes:
        pattern: what it matches.
        anchor: a word of it that a text without it cannot have: looked for first, since most texts have few.
        weight: number of characters that it fixes: of two messages that overlap the heavier one is meant.
    """

    pattern: re.Pattern[str]
    anchor: str
    weight: int


@cache
def _templates(code: str, name: str, messages: tuple[str, ...]) -> tuple[Template, ...]:
    found = []
    for message in messages:
        words = " ".join(FIELD.sub(" ", message).split()).split(" ")
        pattern = re.compile(template_pattern(message), re.MULTILINE)
        found.append(Template(pattern, max(words, key=len), sum(map(len, words))))
    if CODE.fullmatch(code):
        # Never the number alone: log lines begin with E, month and day.
        if name:
            found.append(Template(re.compile(rf"\b{code}: {name}\b"), code, len(code + name)))
        page = re.compile(rf"errors/(?:error_|{code[0].lower()}){code[1:]}\b")
        found.append(Template(page, code[1:], len(code)))
    return tuple(found)


def template_pattern(message: str) -> str:
    """The regular expression of a message template."""
    parts: list[str] = []
    position = 0
    for match in FIELD.finditer(message):
        parts.append(_literal(message[position : match.start()]))
        parts.append(f"(?P<{match[1]}{match[2]}>{_kind(match[1], match.end() == len(message))})")
        position = match.end()
    parts.append(_literal(message[position:]))
    return _lookbehind(message) + "".join(parts)


def _lookbehind(message: str) -> str:
    """What keeps a field at the beginning from being tried at every place within one long word."""
    first = FIELD.match(message)
    characters = _REPEATED.fullmatch(FIELDS[first[1]]) if first else None
    return f"(?<!{characters[1]})" if characters else ""


def _kind(name: str, is_last: bool) -> str:
    """What the field matches: where nothing comes after it, text takes the line and a shape the word."""
    return _AT_END.get(name, FIELDS[name]) if is_last else FIELDS[name]


def _literal(text: str) -> str:
    return re.sub(r"(?:\\ )+", r"\\s+", re.escape(text))


class _File(msgspec.Struct, forbid_unknown_fields=True):
    entry: list[Entry]


def _read(path: Traversable) -> list[Entry]:
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _File).entry


@cache
def catalogue() -> tuple[Entry, ...]:
    """All entries, in the order of their files."""
    paths = sorted((files("hlotool.checks.explain") / "catalog").iterdir(), key=lambda path: path.name)
    return tuple(entry for path in paths if path.name.endswith(".toml") for entry in _read(path))


@cache
def forms() -> tuple[Entry, ...]:
    """The general forms of messages, those that say more first."""
    return tuple(_read(files("hlotool.checks.explain") / "forms.toml"))


def find_entry(text: str) -> Entry | None:
    """The entry that `text` names: its id, its name, or a bare number such as `1200`."""
    wanted = text.strip().lower()
    for entry in (*catalogue(), *forms()):
        names = {entry.id.lower(), entry.name.lower()} | ({entry.id[1:]} if entry.is_code else set())
        if wanted and wanted in names:
            return entry
    return None
