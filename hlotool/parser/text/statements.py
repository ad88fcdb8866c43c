"""Large texts: what stands before the computations, and into which parts a line is cut.

The tables of source positions of a model have thousands of rows, at which few commands look: an expression
proves that they are as XLA prints them, and they are decoded when they are asked for.

How a line is cut does not depend on where it stands: what it came to in one stage of a module, an equal one
in the next stage comes to again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from hlotool.ir.attributes import FileLocation, StackFrame, StackFrameTables
from hlotool.parser.text.builder import Builder
from hlotool.parser.text.hlo_parser import RESERVED
from hlotool.parser.text.modules import Header, read_header
from hlotool.parser.text.pieces import (
    SAFE_NUMBER,
    Doubt,
    Pieces,
    printed_metadata,
)
from hlotool.parser.text.syntax import HeaderSyntax, Name
from hlotool.parser.tokens import SAFE_STRING, unquote

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
    parts = (rf"\n*{title}\n(?>(?:{row}\n)*)" for title, row in zip(_TITLES, rows))
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


_PARENTHESES = r"[^()\n]*+(?>(?:\([^()\n]*+\)[^()\n]*+)*)"
_NESTED_PARENTHESES = rf"[^()\n]*+(?>(?:\({_PARENTHESES}\)[^()\n]*+)*)"
#: An instruction line as XLA prints it; its groups are the fields of `Line`. Of any other line all are empty.
_LINE = re.compile(
    rf"^(?: *+(ROOT |)%?+({NAME.removeprefix('%?')}+) = "
    r"((?:\(.*?\)|[a-z0-9]++\[[^\]\n]*+\](?:\{[^}\n]*+\}|)) [a-z0-9\-]++)"
    rf"\((?:%?+((?!(?:true|false|inf|nan)\))[A-Za-z_][%A-Za-z0-9_.\-,# ]*+)|({_NESTED_PARENTHESES}))\)"
    r"([^m\n]*+(?>(?:m(?!etadata=\{)[^m\n]*+)*))"
    rf"(?:(?<=, )({printed_metadata()})|)(.*+)|.*+)$",
    re.MULTILINE,
)

#: ROOT or nothing; name; shape and opcode; operands that are but names, the first without its `%`; what else
#: stands in the parentheses; attributes before the metadata; metadata, where it is as XLA prints it; and what
#: follows. A tuple, for there is one for each line.
Line: TypeAlias = "tuple[str | Any, ...]"


class Stage(NamedTuple):
    """A text, for the next one.

    Attributes:
        module: that it is a stage of.
        lines: the parts of its lines; nothing of the first stage, which may be the only one.
    """

    module: str
    lines: dict[str, Line]


class Lines:
    """Cuts lines into their parts.

    Args:
        pieces: what is known already.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._module = ""
        self._before: dict[str, Line] | None = None
        self._now: dict[str, Line] = {}

    def begin(self, module: str) -> None:
        """Begin a text; one of the same module as the last is probably its next stage, with equal lines."""
        last = self._pieces.last_stage
        self._module = module
        self._before = last.lines if last is not None and last.module == module else None

    def end(self) -> None:
        """Keep what this text may share with the next one."""
        self._pieces.last_stage = Stage(self._module, self._now)

    def between(self, text: str, start: int, end: int) -> list[Line]:
        """The parts of each line between two positions."""
        if self._before is None:
            return _LINE.findall(text, start, end)
        known, now = self._before.get, self._now
        lines = []
        for line in text[start:end].split("\n"):
            parts = known(line)
            if parts is None:
                found = _LINE.fullmatch(line)
                assert found is not None
                parts = found.groups("")
            now[line] = parts
            lines.append(parts)
        return lines
