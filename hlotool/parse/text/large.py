"""Large texts, line by line: how a line is cut is only a guess, and each piece proves its part of the guess.

Dumps have one instruction to a line and say the same things again and again. A line is cut into name, shape,
opcode, operands and attributes; where each piece is what the grammar wants there, so is the line. Names of
operands need no proof: they are looked up among names that were proved. A line that is not of that form, or
whose pieces are not proved, goes to the parser as a whole. Where that fails too (a computation over several
lines, a comment, an error), the parser reads the text from there on, and its verdict and its message are the
answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from hlotool import grammar
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import Shape
from hlotool.parse.text.builder import Builder, Mark, is_illegal_name
from hlotool.parse.text.checks import same_array
from hlotool.parse.text.modules import finish_module, read_header
from hlotool.parse.text.pieces import Doubt, after_comment, known_pieces, split_commas
from hlotool.parse.text.scope import Scope
from hlotool.parse.text.strings import unquote
from hlotool.parse.text.structure_actions import RESERVED, parse_syntax
from hlotool.parse.text.syntax import (
    AttributeSyntax,
    FieldRow,
    HeaderSyntax,
    InstructionSyntax,
    Name,
    Remainder,
    Source,
    TablesSyntax,
    TextError,
)

_NAME = r"%?(?!__)[A-Za-z_][A-Za-z0-9_.\-]*"
_PARENTHESES = r"[^()\n]*(?:\([^()\n]*\)[^()\n]*)*"
_NESTED_PARENTHESES = rf"[^()\n]*(?:\({_PARENTHESES}\)[^()\n]*)*"
#: An instruction line as XLA prints it: ROOT, name, shape, opcode, operands, attributes; or any other line.
_LINE = re.compile(
    rf"^ *(ROOT )?({_NAME}) = (\(.*?\)|[a-z0-9]+\[[^\]\n]*\](?:\{{[^}}\n]*\}})?) ([a-z0-9\-]+)"
    rf"\(({_NESTED_PARENTHESES})\)(.*)$|^(.*)$",
    re.MULTILINE,
)
_HEAD = re.compile(rf"(ENTRY )?({_NAME}) (?:\((.*)\) -> (.*) )?\{{$")
_HEAD_LINE = re.compile("^" + _HEAD.pattern, re.MULTILINE)
_MODULE_LINE = re.compile(rf"HloModule ({_NAME})(, .*)?$")
_LINE_COMMENTS = re.compile(r"(?:[ \t]*(?://[^\r\n\0]*)?\n)*")
_BLANK_LINES = re.compile(r"[ \t\r\n]*")
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]*): (.*)")
_FIELD_ROW = re.compile(r"(-?[0-9]+)\s*\{([^}]*)\}")
_FIELD = re.compile(r"([A-Za-z0-9_.\-]+)=\s*(-?[0-9]+)")
_METADATA = ", metadata={"
#: It may not fit in 64 bits.
_LONG_NUMBER = re.compile(r"[0-9]{19}")
#: No number of a parameter has more digits.
_MOST_DIGITS = 9
#: Tokens that cannot name an instruction.
_FORBIDDEN = RESERVED | {f"%{word}" for word in RESERVED if is_illegal_name(word)}


@dataclass(slots=True)
class _OpenComputation:
    """A computation while its lines are read.

    Attributes:
        name: without `%`.
        is_entry: it is marked ENTRY.
        result: shape of the result according to the signature, if there is one.
        position: of the line that opens it.
        line: number of that line.
        body_start: where the first instruction's line begins.
        body_end: of the last one's line.
        scope: the instructions.
        names: of operands as they are written, `%` included.
    """

    name: str
    is_entry: bool
    result: Shape | None
    position: int
    line: int
    body_start: int
    body_end: int
    scope: Scope = field(default_factory=Scope)
    names: dict[str, Instruction] = field(default_factory=dict)


class LargeReader:
    """Reads one text.

    Args:
        source: what to read.
        strict: reject what XLA rejects although hlotool understands it.
    """

    def __init__(self, source: Source, strict: bool) -> None:
        self._source = source
        self._text = source.text
        self._strict = strict
        self._pieces = known_pieces(strict)
        self._builder = Builder(source.text, strict)
        self._line = 1

    def module(self) -> Module | None:
        """The module, or None where the text does not begin like one of XLA's dumps."""
        first = _HEAD_LINE.search(self._text)
        if first is None:
            return None
        try:
            header = read_header(self._header(self._text[: first.start()]), self._builder)
        except (Doubt, TextError):
            return None
        self._line += self._text.count("\n", 0, first.start())
        position = first.start()
        while position < len(self._text):
            position = self._computation(position)
        if not self._builder.computations:
            return None
        return finish_module(header, self._builder, self._source.path)

    # Header

    def _header(self, text: str) -> HeaderSyntax:
        before = _LINE_COMMENTS.match(text)
        assert before is not None
        first_line, _, tables = text[before.end() :].partition("\n")
        found = _MODULE_LINE.match(first_line)
        if found is None or found[1] in RESERVED:
            raise Doubt
        attributes = tuple(
            attribute._replace(position=text.find(f"{attribute.key}=", before.end()))
            for attribute in self._pieces.attributes(found[2] or "")
        )
        name = Name(found[1].removeprefix("%"), before.end() + found.start(1), 1)
        return HeaderSyntax(name, attributes, _tables(tables) if tables.strip() else None)

    # Computations

    def _computation(self, position: int) -> int:
        """Read a computation; returns where the next one begins."""
        mark = self._builder.mark()
        try:
            opened = self._open(position)
            lines = _LINE.findall(self._text, opened.body_start, opened.body_end)
            for number, parts in enumerate(lines):
                if not self._line_is_read(parts, opened.line + 1 + number, opened):
                    break
            else:
                return self._close(opened)
        except (Doubt, TextError):
            return self._rest(position, mark)
        return self._remainder(opened, number) or self._rest(position, mark)

    def _open(self, position: int) -> _OpenComputation:
        """Read the line that opens a computation."""
        text = self._text
        body_start = text.find("\n", position) + 1
        body_end = text.find("\n}", body_start - 1)
        head = _HEAD.fullmatch(text, position, body_start - 1)
        if not body_start or body_end < body_start or head is None:
            raise Doubt
        is_entry, name, parameters, result = head.groups()
        if name in RESERVED:
            raise Doubt
        self._check_parameters(parameters)
        shape = self._pieces.shape(result) if result is not None else None
        return _OpenComputation(
            name.removeprefix("%"), bool(is_entry), shape, position, self._line, body_start, body_end
        )

    def _close(self, opened: _OpenComputation) -> int:
        """Add a computation whose lines are read; returns where the next one begins."""
        text = self._text
        end = text.find("\n", opened.body_end + 1)
        end = len(text) if end < 0 else end
        self._finish(opened, self._pieces.parse("attributes", text[opened.body_end + 2 : end]))
        following = _BLANK_LINES.match(text, end)
        assert following is not None
        self._line += text.count("\n", opened.position, following.end())
        return following.end()

    def _finish(self, opened: _OpenComputation, attributes: tuple[AttributeSyntax, ...]) -> None:
        if not opened.scope.instructions:
            raise Doubt
        computation = opened.scope.finish(opened.name, opened.line, opened.position)
        self._builder.add_computation(
            computation, opened.is_entry, opened.result, attributes, opened.position
        )

    # What the parser reads

    def _remainder(self, opened: _OpenComputation, number: int) -> int:
        """Read from a line of a computation to the end of the text; 0 where that is not the place to begin.

        All before that line is proved, so the parser comes to the same verdict as if it began at the front.
        """
        if not opened.scope.instructions:
            return 0
        begin = opened.body_start
        for _ in range(number):
            begin = self._text.index("\n", begin) + 1
        syntax: Remainder = parse_syntax(self._source, "remainder", self._strict, begin)
        if syntax.continued:
            return 0
        self._builder.instructions(syntax.instructions, opened.scope)
        self._finish(opened, syntax.attributes)
        for computation in syntax.computations:
            self._builder.computation(computation)
        return len(self._text)

    def _rest(self, position: int, mark: Mark) -> int:
        """Read from the beginning of a computation to the end of the text."""
        self._builder.reset(mark)
        for computation in parse_syntax(self._source, "computations", self._strict, position):
            self._builder.computation(computation)
        return len(self._text)

    def _check_parameters(self, declared: str | None) -> None:
        """The parameters of a signature must be well-formed; they mean nothing."""
        for piece in split_commas(declared) if declared else ():
            found = _PARAMETER.fullmatch(piece)
            if found is None:
                raise Doubt
            self._pieces.shape(found[2])

    # Instructions

    def _line_is_read(self, parts: tuple[str, ...], line: int, opened: _OpenComputation) -> bool:
        """Read a line, from its pieces or else as a whole; False where neither proves it."""
        before = len(opened.scope.instructions)
        try:
            self._instruction(parts, line, opened.scope, opened.names)
        except (Doubt, TextError):
            opened.scope.truncate(before)
        else:
            return True
        mark = self._builder.mark()
        try:
            self._whole_line(parts, line, opened.scope, opened.names)
        except (Doubt, TextError):
            opened.scope.truncate(before)
            self._builder.reset(mark)
            return False
        return True

    def _instruction(
        self, parts: tuple[str, ...], line: int, scope: Scope, names: dict[str, Instruction]
    ) -> None:
        """Read a line from its pieces; raises Doubt, TextError or KeyError where they do not prove it."""
        root, name, shape_text, opcode, inner, attributes, _ = parts
        if opcode not in OPCODES or name in _FORBIDDEN:
            raise Doubt
        pieces, builder = self._pieces, self._builder
        metadata = None
        at = attributes.find(_METADATA)
        if at >= 0:
            metadata, rest = pieces.tail(attributes[at:])
            attributes = attributes[:at] + rest
        bound = pieces.bound(opcode, attributes)
        if metadata is not None and bound.metadata is not None:
            raise Doubt
        shape = pieces.shape(shape_text)
        operands: tuple[Instruction, ...] = ()
        literal = number = None
        if opcode == "constant":
            literal = pieces.literal(inner, shape_text, shape)
        elif opcode == "parameter":
            number = _parameter_number(inner)
        elif inner:
            operands = self._operands(inner, names)
        instruction = Instruction(
            name[1:] if name[0] == "%" else name,
            opcode,
            shape,
            operands,
            builder.resolved(bound) if bound.pending else bound.values,
            metadata or bound.metadata,
            literal,
            number,
            line,
            builder.predecessors(bound, scope) if bound.predecessors is not None else (),
        )
        builder.add(instruction, scope, None)
        if root:
            scope.mark_root(instruction, None)
        names[name] = instruction

    def _operands(self, text: str, names: dict[str, Instruction]) -> tuple[Instruction, ...]:
        """Operands by name; each may have a comment and its shape before it."""
        try:
            return tuple([names[piece] for piece in text.split(", ")])
        except KeyError:
            return tuple([self._operand(piece, names) for piece in split_commas(text)])

    def _operand(self, text: str, names: dict[str, Instruction]) -> Instruction:
        if text.startswith("/*"):
            text = after_comment(text)
        shape_text, blank, name = text.rpartition(" ")
        operand = names.get(name)
        if operand is None or (blank and not same_array(self._pieces.shape(shape_text), operand.shape)):
            raise Doubt
        return operand

    def _whole_line(
        self, parts: tuple[str, ...], line: int, scope: Scope, names: dict[str, Instruction]
    ) -> None:
        """Read a line a token at a time."""
        root, name, shape, opcode, inner, attributes, other = parts
        text = other if not name else f"{root}{name} = {shape} {opcode}({inner}){attributes}"
        if not text.strip():
            return
        syntax: InstructionSyntax = self._pieces.parse("instruction", text)
        builder = self._builder
        with builder.within(text, line - 1):
            instruction = builder.instruction(syntax, scope)
        names[instruction.name] = names[f"%{instruction.name}"] = instruction


def _parameter_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Doubt
    return int(text)


def _tables(text: str) -> TablesSyntax:
    """The four tables, each row on its line as XLA prints them."""
    found = _tables_expression()(text)
    if found is None or _LONG_NUMBER.search(text):
        raise Doubt
    file_names, function_names, locations, frames = found.groups()
    return TablesSyntax(_names(file_names), _names(function_names), _rows(locations), _rows(frames))


@cache
def _tables_expression() -> Callable[[str], re.Match[str] | None]:
    """What proves the text of the tables."""
    names, rows = (grammar.pattern(rule) for rule in ("name_rows", "field_rows"))
    parts = zip(("FileNames", "FunctionNames", "FileLocations", "StackFrames"), (names, names, rows, rows))
    whole = "".join(rf"\s*{title}\n({pattern})" for title, pattern in parts)
    return re.compile(whole + r"\s*").fullmatch


def _names(text: str) -> dict[int, str]:
    names = re.findall(f"({grammar.terminal('INT')})\\s*({grammar.terminal('STRING')})", text)
    try:
        return {int(number): unquote(name) for number, name in names}
    except ValueError:
        raise Doubt from None


def _rows(text: str) -> list[FieldRow]:
    rows: list[FieldRow] = []
    for number, inner in _FIELD_ROW.findall(text):
        pairs = _FIELD.findall(inner)
        rows.append(FieldRow(int(number), {key: int(value) for key, value in pairs}, 0))
        if len(rows[-1].fields) != len(pairs):
            raise Doubt
    return rows
