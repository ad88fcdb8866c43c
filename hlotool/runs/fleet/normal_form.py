"""HLO text without what decides nothing: names, metadata, comments, the numbers of channels, white space.

Two texts of one normal form are the same program. It is made of the text and not of the parsed program, for a
fleet dumps one program ten thousand times, and parsing takes ten times as long. Only what is certain is left
out: names that begin with `%` (others cannot be told from opcodes and values without a parser), and nothing
within a quoted string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import compress

from msgspec import Struct

from hlotool.ir.attributes import FileLocation, Metadata, StackFrame, StackFrameTables
from hlotool.ir.printed_annotations import source_position, user_position
from hlotool.system.files import digest

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'

#: What is replaced. Each alternative begins with a character of its own, which lets `re` skip the rest fast.
_TOKEN = re.compile(
    rf"({_STRING}|'[^'\\]*(?:\\.[^'\\]*)*'|%[A-Za-z_][\w.-]*"
    rf"|m(?<![\w.-]m)etadata=\{{[^{{}}\"']*(?:{_STRING}[^{{}}\"']*)*\}}"
    r"|/\*.*?\*/|//[^\n]*)",
    re.DOTALL | re.ASCII,
)
#: The first line of a module names it; the tables of source positions follow.
_NAME = re.compile(r"\A(\s*HloModule\s+)([^\s,]+)")
_TABLES = re.compile(
    r"^FileNames\n(?:[^\n]+\n)*\s*^FunctionNames\n(?:[^\n]+\n)*\s*"
    r"^FileLocations\n(?:[^\n]+\n)*\s*^StackFrames\n(?:[^\n]+\n)*",
    re.MULTILINE,
)
#: `%main.4 (x.1: f32[4], w.1: s8[12]) -> f32[4] {`: the parameters have these names below, too.
_SIGNATURE = re.compile(r"\s*(?:ENTRY )?%\d+ \(.*\) -> .*\{")
_PARAMETER = re.compile(r"(?<=[( ])[A-Za-z_][\w.-]*: ")
_CHANNEL = re.compile(r"\bchannel_id=([1-9]\d*)")
_DEFINITION = re.compile(r"^[ \t]*(?:ROOT )?(%[A-Za-z_][\w.-]*) = ", re.MULTILINE)
_FIELD = re.compile(rf"\b(op_name|source_file|source_line|stack_frame_id)=({_STRING}|\d+)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_TABLE_ROW = re.compile(rf"^(\d+) (?:({_STRING})|\{{(.*)\}})$", re.MULTILINE)
_NUMBER = re.compile(r"(\w+)=(\d+)")

#: White space besides spaces and ends of lines, which XLA does not write.
_ODD_SPACES = "\t\r\v\f\x1c\x1d\x1e\x1f"

#: Stands for metadata until the comma before it is gone; no text holds it.
_METADATA = "\0"


class Told(Struct, frozen=True):
    """What metadata tell of an instruction, as reports show it (`facts.provenance`).

    Attributes:
        op_name: the frontend's name path.
        position: file, line and function of the user's program, the line of a library, and the columns.
    """

    op_name: str
    position: tuple[str, int, str, str, int, int]


@dataclass(frozen=True)
class NormalForm:
    """The normal form of a text, and what it leaves out.

    Attributes:
        key: equal for equal programs.
        text: as it was.
        names: with `%`, each once, in the order in which they appear: number `n` of one text is number `n`
            of any other of this normal form.
        metadata: as written, in order.
        tables: of source positions, as written.
        marks: equal where the same instructions have metadata.
    """

    key: str
    text: str
    names: tuple[str, ...]
    metadata: tuple[str, ...]
    tables: str
    marks: str

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def definitions(self) -> list[tuple[str, int]]:
        """Name and line of each instruction, in order."""
        found, line, at = [], 1, 0
        for match in _DEFINITION.finditer(self.text):
            line += self.text.count("\n", at, match.start(1))
            at = match.start(1)
            found.append((match[1], line))
        return found

    @cached_property
    def _positions(self) -> _Positions:
        return _Positions(_read_tables(self.tables) if self.tables else None)

    @cached_property
    def _told(self) -> dict[str, Told]:
        return {}

    @cached_property
    def distinct_told(self) -> list[int]:
        """Numbers of metadata, one of each that are written alike."""
        return list({text: number for number, text in enumerate(self.metadata)}.values())

    def told(self, number: int) -> Told:
        """What the metadata of this number tell."""
        text = self.metadata[number]
        if text not in self._told:
            self._told[text] = _told(text, self._positions)
        return self._told[text]

    def all_told(self, numbers: Sequence[int]) -> Iterable[Told]:
        """What the metadata of some numbers tell, what is written alike once."""
        texts = {self.metadata[number]: number for number in numbers}
        return map(self.told, texts.values())


def normal_form(text: str) -> NormalForm:
    """The normal form of HLO text; of a text that is no HLO, one that no program shares."""
    whole = text
    text = text.replace(_METADATA, "\ufffd")
    tables = ""
    if found := _tables_in(text):
        tables = found[0]
        text = text[: found.start()] + text[found.end() :]
    text = _NAME.sub(r"\1", text, count=1)
    parts = _TOKEN.split(text)
    tokens = parts[1::2]
    table = _Table()
    parts[1::2] = said = [table[token] for token in tokens]
    form = "".join(parts)
    form = "".join(_without_parameters(form))
    if "channel_id=" in form:
        channels: dict[str, int] = {}
        form = _CHANNEL.sub(lambda m: f"channel_id={channels.setdefault(m[1], len(channels) + 1)}", form)
    form = _with_single_spaces(form).replace(", ", ",")
    # Which instructions have metadata counts for reports, not for what is computed.
    marks = digest(form) if table.has_metadata else ""
    form = form.replace(f",{_METADATA}", "").replace(_METADATA, "")
    return NormalForm(
        digest(form, *table.strings),
        whole,
        tuple(table.names),
        tuple(compress(tokens, [form is _METADATA for form in said])),
        tables,
        marks,
    )


# A regular expression that looks for a line would try each one. What must stand in it is found much faster.


def _tables_in(text: str) -> re.Match[str] | None:
    at = text.find("FileNames\n")
    return _TABLES.search(text, at) if at >= 0 else None


def _without_parameters(form: str) -> Iterator[str]:
    """The text in pieces, signatures without the names of parameters."""
    done = 0
    while (arrow := form.find(") -> ", done)) >= 0:
        start = form.rfind("\n", done, arrow) + 1 or done
        end = form.find("\n", arrow)
        end = len(form) if end < 0 else end
        line = form[start:end]
        yield form[done:start]
        yield _PARAMETER.sub("", line) if _SIGNATURE.fullmatch(line) else line
        done = end
    yield form[done:]


def _with_single_spaces(form: str) -> str:
    if not form.isascii() or any(space in form for space in _ODD_SPACES):
        return " ".join(form.split())
    form = form.replace("\n", " ").strip(" ")
    while "  " in form:
        form = form.replace("  ", " ")
    return form


def likeness(forms: Sequence[NormalForm]) -> str:
    """A key of which instructions of several texts have one name, and which one name of the frontend's.

    Who looks for the instructions of two programs that correspond takes that for a hint.
    """
    first, *others = forms
    operations = {first.told(number).op_name: number for number in reversed(first.distinct_told)}
    return digest(
        *(
            repr(
                (
                    [first.numbers.get(name, -1) for name in form.names],
                    [operations.get(form.told(number).op_name, -1) for number in form.distinct_told],
                )
            )
            for form in others
        )
    )


class _Table(dict[str, str]):
    """What stands for a token in the normal form."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.strings: list[str] = []
        self.has_metadata = False

    def __missing__(self, token: str) -> str:
        first = token[0]
        if first == "%":
            self.names.append(token)
            form = f"%{len(self.names)}"
        elif first in "\"'":
            # Beside the text, so that the white space within it is safe.
            self.strings.append(token)
            form = f'"{len(self.strings)}"'
        elif first == "m":
            self.has_metadata = True
            form = _METADATA
        else:
            form = " "  # a comment
        self[token] = form
        return form


class _Positions(dict[tuple[str, int, int], tuple[str, int, str, str, int, int]]):
    """By file, line and stack frame of metadata: the position as in `Told`. Many instructions share one."""

    def __init__(self, tables: StackFrameTables | None) -> None:
        super().__init__()
        self._tables = tables

    def __missing__(self, key: tuple[str, int, int]) -> tuple[str, int, str, str, int, int]:
        file, line, frame = key
        metadata = Metadata(source_file=file, source_line=line, stack_frame_id=frame)
        innermost, user = source_position(metadata, self._tables), user_position(metadata, self._tables)
        library = str(innermost) if innermost is not None and innermost.is_installed else ""
        place = (user.file, user.line, user.function) if user is not None else ("", 0, "")
        columns = user.columns if user is not None else (0, 0)
        found = self[key] = (*place, library, *columns)
        return found


def _told(text: str, positions: _Positions) -> Told:
    """What hlotool's reports say of an instruction with these metadata."""
    known = {key: _plain(value) for key, value in _FIELD.findall(text)}
    line, frame = int(known.get("source_line", 0)), int(known.get("stack_frame_id", 0))
    return Told(known.get("op_name", ""), positions[known.get("source_file", ""), line, frame])


def _plain(value: str) -> str:
    if not value.startswith('"'):
        return value
    return _ESCAPE.sub(r"\1", value[1:-1]) if "\\" in value else value[1:-1]


@lru_cache(maxsize=4)
def _read_tables(text: str) -> StackFrameTables:
    """The four tables, mostly the same in all texts of a module; each begins with a line that names it."""
    names, functions, locations, frames = (
        list(_rows(part))
        for part in re.split(r"^(?:FunctionNames|FileLocations|StackFrames)\n", text, flags=re.M)
    )
    return StackFrameTables(
        {number: name for number, name, _ in names},
        {number: name for number, name, _ in functions},
        {
            number: FileLocation(*(row.get(name, 0) for name in FileLocation.__struct_fields__))
            for number, _, row in locations
        },
        {
            number: StackFrame(row.get("file_location_id", 0), row.get("parent_frame_id", 0))
            for number, _, row in frames
        },
    )


def _rows(table: str) -> Iterator[tuple[int, str, dict[str, int]]]:
    for number, name, values in _TABLE_ROW.findall(table):
        yield int(number), _plain(name), {key: int(value) for key, value in _NUMBER.findall(values)}
