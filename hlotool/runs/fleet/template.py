"""Rows of one module as a form that every module with the same program can fill in.

Reports name files, instructions and source lines. In a template these are slots, found by what they are in
the texts of the module that was replayed: its third name, the line of its fifth instruction. A twin has the
same program, so its own third name and line stand there in its rows. What cannot be told apart with
certainty (a word that is a name in one text and an opcode in the other) makes a condition; a twin that does
not meet it is replayed itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from hlotool.judge.verdicts import AGREEING, FAILED
from hlotool.runs.records import ModuleRecord
from hlotool.system.files import digest
from hlotool.system.records import SourceRecord

if TYPE_CHECKING:
    from hlotool.runs.fleet.normal_form import NormalForm

#: Where in a module a value stands: what it is, in which text, which one; the last says which of several
#: that told the same in the template's own module.
Place: TypeAlias = tuple[str, int, tuple[int, ...]]

#: The texts of a module: the first is the reference.
Forms: TypeAlias = "Sequence[NormalForm]"

_SLOT: Final = "\x01"
_FILLED = re.compile(rb'"\\u0001n(\d+)\\u0001"|\\u0001s(\d+)\\u0001')
#: In prose: a name, with its line; a line alone; any other word.
_MENTION = (
    r"(?P<name>%[A-Za-z_][\w.-]*)(?: \(line (?P<at>\d+)\))?|\bline (?P<line>\d+)|(?P<word>[A-Za-z_][\w.-]*)"
)
#: What JSON writes as it is.
_PLAIN = re.compile(r"[ !#-\[\]-~]*")
_WORD = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_SOURCE = frozenset(SourceRecord.__struct_fields__)
_POSITION = ("file", "file_line", "function", "library")
_COLUMNS = ("from_column", "to_column")
_NUMBERS = frozenset({"file_line", *_COLUMNS})

#: Fields that speak of the reference's text.
_OF_REFERENCE = frozenset(
    {"coverage", "rules", "expected_source", "expected_text", "inside_expected", "expected_neighbours"}
)
#: Fields that are names without `%`.
_BARE_NAMES = frozenset({"instruction", "instructions", "operands"})
#: Words of ours, and what a process wrote before it died.
_AS_IT_IS = frozenset(
    {"verdict", "kind", "opcode", "shape", "log", "finding", "state", "stage_reference", "stage_tested"}
)


class Template(msgspec.Struct, frozen=True, array_like=True):
    """Rows with slots.

    Attributes:
        id: what was told for the slots of one template says nothing to another.
        pieces: the JSON of the rows, cut at the slots.
        slots: between two pieces, the number of a value.
        values: where each value stands: all of these places must say the same. None for the title of the
            module, a number for one of its paths.
        same: places that must say what they said in the template's own module, and what that was.
        marks: where the texts have metadata; empty where the rows name no source.
        likeness: see `normal_form.likeness`; empty where nothing had to be located.
    """

    id: str
    pieces: list[str]
    slots: list[int]
    values: list[list[Place] | int | None]
    same: list[tuple[Place, str]]
    marks: list[str]
    likeness: str


class _Untold(Exception):
    """A row names something of a text that is not found there."""


def template_of(
    rows: Sequence[ModuleRecord], title: str, paths: Sequence[str], forms: Forms = ()
) -> Template | None:
    """The rows of a module as a template; None where they hold what no other module can have.

    Args:
        rows: of the module.
        title: of the module.
        paths: of its files: first those of its texts, in the order of `forms`.
        forms: of its texts, the reference first; none where every module that asks has the same bytes.
    """
    if forms and any(row.error is not None and row.verdict not in FAILED for row in rows):
        return None  # it quotes the text
    encoded = msgspec.json.encode(rows)
    if rb"\u0001" in encoded:
        return None
    maker = _Maker(title, paths, forms)
    tested = [paths.index(row.path) if row.path in paths[1 : len(forms)] else -1 for row in rows]
    try:
        content = [
            maker.row(row, side % len(forms) if forms else 0)
            for row, side in zip(msgspec.json.decode(encoded), tested)
        ]
    except _Untold:
        return None
    found = _FILLED.split(msgspec.json.encode(content))
    # Two groups for each slot, one of which is empty.
    pieces = [piece.decode() for piece in found[::3]]
    slots = [int(number or text) for number, text in zip(found[1::3], found[2::3])]
    marks = [form.marks for form in forms] if maker.names_source else []
    like = _likeness(forms) if forms and any(row.verdict not in AGREEING for row in rows) else ""
    made = digest(*pieces, repr((slots, maker.values)))
    return Template(made, pieces, slots, maker.values, maker.same, marks, like)


def filled(template: Template, told: Sequence[str], title: str, paths: Sequence[str]) -> list[ModuleRecord]:
    """The rows of a module.

    Args:
        template: of its program.
        told: what stands in its texts; see `told_by`.
        title: of the module.
        paths: of its files, in the order of the template's.

    Raises:
        ValueError: the template is damaged.
    """
    known = [
        _text(told[number] if isinstance(value, list) else title if value is None else paths[value])
        for number, value in enumerate(template.values)
    ]
    parts = [template.pieces[0]]
    for slot, piece in zip(template.slots, template.pieces[1:], strict=True):
        parts += (known[slot], piece)
    return msgspec.json.decode("".join(parts), type=list[ModuleRecord])


def told_by(template: Template, forms: Forms) -> list[str] | None:
    """What stands for each value of a template in the texts of a module.

    None: the module must be replayed itself.
    """
    if template.marks and template.marks != [form.marks for form in forms]:
        return None
    if template.likeness and template.likeness != _likeness(forms):
        return None
    try:
        if any(_at(place, forms) != said for place, said in template.same):
            return None
        told: list[str] = []
        for places in template.values:
            said = {_at(place, forms) for place in places} if isinstance(places, list) else {""}
            if len(said) > 1:
                return None
            told += said
        return told
    except IndexError:  # a text whose lines are broken elsewhere
        return None


def _likeness(forms: Forms) -> str:
    from hlotool.runs.fleet.normal_form import likeness

    return likeness(forms)


def _at(place: Place, forms: Forms) -> str:
    """What stands at a place; unlike anything where its parts do not agree."""
    kind, side, numbers = place
    said = set(_SAYS[kind](forms[side], numbers))
    return said.pop() if len(said) == 1 else f"{_SLOT}{sorted(said)}"


def _text(value: str) -> str:
    """As JSON without quotes; most texts are names, in which nothing is escaped."""
    return value if _PLAIN.fullmatch(value) else json.dumps(value)[1:-1]


def _parts_of_position(part: int) -> Callable[[NormalForm, Sequence[int]], Iterable[str]]:
    return lambda form, numbers: {str(told.position[part]) for told in form.all_told(numbers)}


#: What stands at some numbers of a text, by kind.
_SAYS: dict[str, Callable[[NormalForm, Sequence[int]], Iterable[str]]] = {
    "name": lambda form, numbers: [form.names[number][1:] for number in numbers],
    "line": lambda form, numbers: [str(form.definitions[number][1]) for number in numbers],
    "op_name": lambda form, numbers: {told.op_name for told in form.all_told(numbers)},
    "file": _parts_of_position(0),
    "file_line": _parts_of_position(1),
    "function": _parts_of_position(2),
    "library": _parts_of_position(3),
    "from_column": _parts_of_position(4),
    "to_column": _parts_of_position(5),
}


class _Maker:
    """Replaces what is a module's own by slots.

    Args:
        title: of the module.
        paths: of its files.
        forms: of its texts.

    Attributes:
        values: of the template.
        same: of the template.
        names_source: some row names a source.
    """

    def __init__(self, title: str, paths: Sequence[str], forms: Forms) -> None:
        self.values: list[list[Place] | int | None] = []
        self.same: list[tuple[Place, str]] = []
        self.names_source = False
        self._forms = forms
        self._numbers: dict[str, int] = {}
        self._own: dict[str, int | None] = {p: number for number, p in reversed(list(enumerate(paths))) if p}
        self._own[title] = None
        longest = sorted(self._own, key=len, reverse=True)
        own = "|".join(rf"(?<![\w/.-]){re.escape(text)}(?![\w/-])" for text in longest)
        self._mention = re.compile(f"(?P<own>{own})|{_MENTION}", re.ASCII)

    def row(self, row: Mapping[str, Any], tested: int) -> dict[str, Any]:
        """A row, whose tested program is the text `tested`."""
        return {
            key: self._of(value, key, tested if key == "divergence" else None) for key, value in row.items()
        }

    def _of(self, value: Any, key: str, side: int | None) -> Any:
        """A part of a row; `side` is the text that it speaks of, where that is known."""
        side = 0 if key in _OF_REFERENCE else side
        if isinstance(value, dict):
            if value.keys() == _SOURCE:
                return self._source(value, side)
            return {name: self._of(item, name, side) for name, item in value.items()}
        if isinstance(value, list):
            return [self._of(item, key, side) for item in value]
        if not isinstance(value, str) or not value or key in _AS_IT_IS:
            return value
        return self._name(value, side) if key in _BARE_NAMES else self._prose(value, side)

    def _prose(self, text: str, side: int | None) -> str:
        if self._forms:
            self._need_same_sources(text)
        return self._mention.sub(lambda mention: self._mentioned(mention, side), text)

    def _mentioned(self, mention: re.Match[str], side: int | None) -> str:
        text = mention[0]
        if mention["own"]:
            return self._slot(self._own[text])
        if not self._forms:
            return text
        if name := mention["name"]:
            # A sentence may end with a name.
            bare, line = name[1:].rstrip(".-"), int(mention["at"] or 0)
            rest = text[1 + len(bare) :] if not line else name[1 + len(bare) :]
            made = f"%{self._name(bare, side, line)}{rest}"
            return f"{made} (line {self._line(side, line, bare)})" if line else made
        if line_text := mention["line"]:
            return f"line {self._line(side, int(line_text))}"
        from hlotool.ir.opcodes import OPCODES

        for word in {text, text.rstrip(".-")} - OPCODES.keys():
            self._need_same(self._names(word, side))
        return text

    def _source(self, source: Mapping[str, Any], side: int | None) -> dict[str, Any]:
        """An instruction, and what metadata tell of it or of what is around it."""
        if not self._forms:
            return dict(source)
        self.names_source = True
        name, line = source["instruction"], source["line"]
        made = dict(source) | {"instruction": self._name(name, side, line)}
        if line:
            made["line"] = self._line(side, line, name, is_number=True)
        made["op_name"] = self._told(side, "op_name", source["op_name"], source["op_name"])
        columns = dict(zip(_COLUMNS, source["columns"], strict=True))
        position = (*(source[key] for key in _POSITION), *columns.values())
        for key in _POSITION:
            made[key] = self._told(side, key, position, source[key])
        made["columns"] = [self._told(side, key, position, column) for key, column in columns.items()]
        return made

    def _told(self, side: int | None, key: str, said: object, value: object) -> object:
        """A field that metadata tell: the same in all that tell `said`, as an `op_name` or as a position."""
        places: list[Place] = [
            (key, number, alike)
            for number in self._sides(side)
            if (alike := self._alike[number].get(said)) is not None
        ]
        return self._slot(places, is_number=key in _NUMBERS) if places else value

    @cached_property
    def _alike(self) -> list[dict[object, tuple[int, ...]]]:
        """For each text, the numbers of metadata by the `op_name`, and by the position, that they tell."""
        found: list[dict[object, tuple[int, ...]]] = []
        for form in self._forms:
            numbers: dict[object, list[int]] = {}
            for number in range(len(form.metadata)):
                told = form.told(number)
                for said in (told.op_name, told.position):
                    numbers.setdefault(said, []).append(number)
            found.append({said: tuple(alike) for said, alike in numbers.items()})
        return found

    def _name(self, name: str, side: int | None, line: int = 0) -> str:
        places = self._names(name, side)
        if line:
            defined = {place[1] for place in self._lines(side, line, name)}
            places = [place for place in places if place[1] in defined] or places
        return self._slot(places) if places else name

    def _names(self, name: str, side: int | None) -> list[Place]:
        known = ((s, self._forms[s].numbers.get(f"%{name}")) for s in self._sides(side))
        return [("name", s, (number,)) for s, number in known if number is not None]

    def _line(self, side: int | None, line: int, name: str = "", is_number: bool = False) -> str:
        if places := self._lines(side, line, name) or self._lines(side, line, ""):
            return self._slot(places, is_number)
        raise _Untold

    def _lines(self, side: int | None, line: int, name: str) -> list[Place]:
        return [
            ("line", s, (number,))
            for s in self._sides(side)
            for number, (known, at) in enumerate(self._forms[s].definitions)
            if at == line and name in ("", known[1:])
        ]

    def _sides(self, side: int | None) -> Sequence[int]:
        every = range(len(self._forms))
        return every if side is None else every[side : side + 1]

    def _slot(self, value: list[Place] | int | None, is_number: bool = False) -> str:
        number = self._numbers.setdefault(repr(value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return f"{_SLOT}{'n' if is_number else 's'}{number}{_SLOT}"

    def _need_same(self, places: Iterable[Place]) -> None:
        self.same += [(place, _at(place, self._forms)) for place in places]

    def _need_same_sources(self, text: str) -> None:
        """Prose that holds a frontend's name or a file is only true of twins that have the same."""
        words, phrases = self._sources
        for said in words.keys() & _WORD.findall(text):
            self._need_same(words.pop(said))
        for said in [said for said in phrases if said in text]:
            self._need_same(phrases.pop(said))

    @cached_property
    def _sources(self) -> tuple[dict[str, list[Place]], dict[str, list[Place]]]:
        """Where names of the frontend and files are told, by what they are: single words, and others.

        What is needed once is needed: it is taken out then.
        """
        words: dict[str, list[Place]] = {}
        phrases: dict[str, list[Place]] = {}
        for side, form in enumerate(self._forms):
            for number in form.distinct_told:
                told = form.told(number)
                for key, said in (("op_name", told.op_name), ("file", told.position[0])):
                    if said:
                        places = (words if _WORD.fullmatch(said) else phrases).setdefault(said, [])
                        places += [(key, side, (number,)), ("file_line", side, (number,))]
        return words, phrases
