"""Large texts: what stands before the computations, and what a line says by itself.

The tables of source positions of a model have thousands of rows, at which few commands look: an expression
proves that they are as XLA prints them, and they are decoded when they are asked for.

What a line says before the names in it are looked up does not depend on where it stands: what it came to in
one stage of a module, an equal one in the next stage comes to again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hlotool.ir.attributes import FileLocation, StackFrame, StackFrameTables
from hlotool.parser.text.builder import Builder
from hlotool.parser.text.hlo_parser import RESERVED
from hlotool.parser.text.modules import Header, read_header
from hlotool.parser.text.pieces import (
    METADATA_KEY,
    SAFE_NUMBER,
    Doubt,
    Pieces,
    after_comment,
    split_commas,
)
from hlotool.parser.text.syntax import HeaderSyntax, Name, TextError
from hlotool.parser.tokens import SAFE_STRING, unquote

if TYPE_CHECKING:
    from hlotool.ir.arrays import Literal
    from hlotool.ir.attributes import Metadata
    from hlotool.ir.types import Shape
    from hlotool.parser.text.attributes import BoundAttributes
    from hlotool.parser.text.single_opcodes import Rule

# What stands before the computations of a large text: the HloModule line and the tables of source positions.
#
# The tables of a model have thousands of rows, at which few commands look: an expression proves that they
# are as XLA prints them, and they are decoded when somebody asks.

#: As XLA prints it, with `%` or without.
NAME = r"%?(?!__)[A-Za-z_][A-Za-z0-9_.\-]*"
_MODULE_LINE = re.compile(rf"HloModule ({NAME})(, .*)?$")
_LINE_COMMENTS = re.compile(r"(?:[ \t]*(?://[^\r\n\0]*)?\n)*")
_TITLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def large_header(text: str, builder: Builder, pieces: Pieces) -> Header:
    """The header of a module, of which nothing else stands in `text`; raises Doubt or TextError."""
    before = _LINE_COMMENTS.match(text)
    assert before is not None
    first_line, _, tables = text[before.end() :].partition("\n")
    found = _MODULE_LINE.match(first_line)
    if found is None or found[1] in RESERVED:
        raise Doubt
    attributes = tuple(
        attribute._replace(position=text.find(f"{attribute.key}=", before.end()))
        for attribute in pieces.attributes(found[2] or "")
    )
    name = Name(found[1].removeprefix("%"), before.end() + found.start(1), 1)
    header = read_header(HeaderSyntax(name, attributes), builder)
    if tables.strip():
        if not _tables_expression()(tables):
            raise Doubt
        header.stack_frames = StackFrameTables.deferred(_decode_tables, tables)
    return header


@cache
def _tables_expression() -> Callable[[str], re.Match[str] | None]:
    """What proves the text of the tables: each row on its line, with nothing that could be wrong in it."""
    names = rf"{SAFE_NUMBER} {SAFE_STRING}"
    rows = (names, names, *(_row(kind, SAFE_NUMBER) for kind in (FileLocation, StackFrame)))
    parts = (rf"\s*{title}\n(?>(?:{row}\n)*)" for title, row in zip(_TITLES, rows))
    return re.compile("".join(parts) + r"\s*").fullmatch


def _row(kind: type[FileLocation | StackFrame], number: str) -> str:
    """An expression for a row of numbers, in XLA's order, which is that of the fields."""
    inner = " ".join(f"{name}={number}" for name in kind.__struct_fields__)
    return rf"{number} \{{{inner}\}}"


def _decode_tables(text: str) -> StackFrameTables:
    """The tables of a text that is proved to be some."""
    _, file_names, function_names, locations, frames = re.split(
        rf"^(?:{'|'.join(_TITLES)})$", text, flags=re.M
    )
    return StackFrameTables(
        _names(file_names),
        _names(function_names),
        {number: FileLocation(*values) for number, *values in _numbers(locations, FileLocation)},
        {number: StackFrame(*values) for number, *values in _numbers(frames, StackFrame)},
    )


def _names(text: str) -> dict[int, str]:
    rows = (row.partition(" ") for row in text.split("\n") if row)
    return {int(number): unquote(name) for number, _, name in rows}


def _numbers(text: str, kind: type[FileLocation | StackFrame]) -> list[tuple[int, ...]]:
    """The number of each row, and its fields."""
    return [tuple(map(int, row)) for row in re.findall(_row(kind, "(-?[0-9]+)"), text)]


_PARENTHESES = r"[^()\n]*+(?>(?:\([^()\n]*+\)[^()\n]*+)*)"
_NESTED_PARENTHESES = rf"[^()\n]*+(?>(?:\({_PARENTHESES}\)[^()\n]*+)*)"
#: An instruction line as XLA prints it: ROOT; name; shape and opcode; operands that are but names or a
#: number, or others; attributes. Of any other line everything is empty.
_LINE = re.compile(
    rf"^(?: *+(?>(ROOT )?)%?+({NAME.removeprefix('%?')}+) = "
    r"((?:\(.*?\)|[a-z0-9]++\[[^\]\n]*+\](?>(?:\{[^}\n]*+\})?)) [a-z0-9\-]++)"
    rf"\((?:([%A-Za-z0-9_.\-,# ]*+)|({_NESTED_PARENTHESES}))\)(.*+)|.*+)$",
    re.MULTILINE,
)
_METADATA = METADATA_KEY + "{"
#: No number of a parameter has more digits.
_MOST_DIGITS = 9


#: ROOT or nothing; name, opcode, shape; names of the operands, and the shapes that the line says for some of
#: them, by position; attributes, which may wait for names; metadata; literal of a constant; number of a
#: parameter; what is demanded of it beyond all that. A tuple, for there is one for each line.
Statement: TypeAlias = (
    "tuple[str, str, str, Shape, Sequence[str], Sequence[tuple[int, Shape]], BoundAttributes,"
    " Metadata | None, Literal | None, int | None, Rule | None]"
)


class Stage(NamedTuple):
    """A text, for the next one.

    Attributes:
        module: that it is a stage of.
        lines: what its lines say; nothing of the first stage, which may be the only one.
    """

    module: str
    lines: dict[str, Statement | None]


class Statements:
    """Reads lines.

    Args:
        pieces: what is known already.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._module = ""
        self._before: dict[str, Statement | None] | None = None
        self._now: dict[str, Statement | None] = {}

    def begin(self, module: str) -> None:
        """Begin a text; one of the same module as the last is probably its next stage, with equal lines."""
        last = self._pieces.last_stage
        self._module = module
        self._before = last.lines if last is not None and last.module == module else None

    def end(self) -> None:
        """Keep what this text may share with the next one."""
        self._pieces.last_stage = Stage(self._module, self._now)

    def of_lines(self, text: str, start: int, end: int) -> list[Statement | None]:
        """What each line between two positions says; None where its pieces do not prove it."""
        if self._before is None:
            return [self._statement(*parts) for parts in _LINE.findall(text, start, end)]
        known, now = self._before.get, self._now
        statements = []
        for line in text[start:end].split("\n"):
            statement = known(line)
            if statement is None and (parts := _LINE.fullmatch(line)) is not None:
                statement = self._statement(*parts.groups(""))
            now[line] = statement
            statements.append(statement)
        return statements

    def _statement(
        self, root: str, name: str, head_text: str, plain: str, nested: str, attributes: str
    ) -> Statement | None:
        if not name or name in RESERVED:
            return None
        pieces = self._pieces
        metadata = literal = number = None
        names: Sequence[str] = ()
        shapes: Sequence[tuple[int, Shape]] = ()
        try:
            opcode, shape, fewest, most, rule, known = pieces.heads.get(head_text) or pieces.head(head_text)
            at = attributes.find(_METADATA)
            if at >= 0:
                tail = attributes[at:]
                metadata, rest = pieces.tails.get(tail) or pieces.tail(tail)
                attributes = attributes[:at] + rest
            bound = known.get(attributes) or pieces.bound(opcode, attributes)
            if bound.metadata is not None:
                if metadata is not None:
                    return None
                metadata = bound.metadata
            if opcode == "constant":
                literal = pieces.literal(plain or nested, head_text, shape)
            elif opcode == "parameter":
                number = _parameter_number(plain)
                rule = rule if bound.values else None
            elif plain:
                names = plain[1:].split(", %") if plain[0] == "%" else _bare_names(plain)
            elif nested:
                names, shapes = self._operands(nested)
        except (Doubt, TextError):
            return None
        if len(names) < fewest or (most is not None and len(names) > most):
            return None
        return root, name, opcode, shape, names, shapes, bound, metadata, literal, number, rule

    def _operands(self, text: str) -> tuple[list[str], list[tuple[int, Shape]]]:
        """Names of operands, each of which may have a comment and its shape before it; and those shapes."""
        names: list[str] = []
        shapes: list[tuple[int, Shape]] = []
        for number, piece in enumerate(split_commas(text)):
            shape, blank, name = (after_comment(piece) if piece.startswith("/*") else piece).rpartition(" ")
            if blank:
                shapes.append((number, self._pieces.shape(shape)))
            if name in RESERVED:
                raise Doubt
            names.append(name.removeprefix("%"))
        return names, shapes


def _bare_names(text: str) -> list[str]:
    """Names without `%`, which are none where XLA reserves the word."""
    names = text.split(", ")
    if not RESERVED.isdisjoint(names):
        raise Doubt
    return [name.removeprefix("%") for name in names]


def _parameter_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Doubt
    return int(text)
