"""What stands before the computations of a large text: the HloModule line and the tables of source positions.

The tables of a model have thousands of rows, at which few commands look: an expression proves that they are
as XLA prints them, and they are decoded when somebody asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache

from hlotool.ir.attributes import FileLocation, StackFrame, StackFrameTables
from hlotool.parse.text.builder import Builder
from hlotool.parse.text.modules import Header, read_header
from hlotool.parse.text.pieces import SAFE_NUMBER, Doubt, Pieces
from hlotool.parse.text.strings import SAFE_STRING, unquote
from hlotool.parse.text.structure_actions import RESERVED
from hlotool.parse.text.syntax import HeaderSyntax, Name

#: As XLA prints it, with `%` or without.
NAME = r"%?(?!__)[A-Za-z_][A-Za-z0-9_.\-]*"
_MODULE_LINE = re.compile(rf"HloModule ({NAME})(, .*)?$")
_LINE_COMMENTS = re.compile(r"(?:[ \t]*(?://[^\r\n\0]*)?\n)*")
_TITLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_TITLE = re.compile(rf"^(?:{'|'.join(_TITLES)})$", re.MULTILINE)


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
    inner = " ".join(f"{field.name}={number}" for field in fields(kind))
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
