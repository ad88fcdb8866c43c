"""Large texts, line by line: how a line is cut is only a guess, and each piece proves its part of the guess.

Dumps have one instruction to a line and say the same things again and again. `statements.py` cuts a line
into parts, `pieces.py` knows what a part says; here the names of the operands are looked up among those of
the instructions before, which were proved. A line that is not of the usual form, or whose pieces are not
proved, goes to the parser as a whole. Where that fails too (a computation over several lines, a comment, an
error), the parser reads the text from there on, and its verdict and its message are the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ELEMENT_TYPES, Shape
from hlotool.parser.text.builder import Builder, Mark
from hlotool.parser.text.hlo_parser import RESERVED, parse_syntax
from hlotool.parser.text.modules import finish_module
from hlotool.parser.text.pieces import (
    SAFE_SIZES,
    Doubt,
    SeveralLines,
    after_comment,
    known_pieces,
    parameter_number,
    split_commas,
)
from hlotool.parser.text.single_opcodes import same_array
from hlotool.parser.text.statements import NAME, Line, Lines, large_header
from hlotool.parser.text.syntax import (
    AttributeSyntax,
    InstructionSyntax,
    Remainder,
    Scope,
    Source,
    TextError,
)

_HEAD = re.compile(rf"(ENTRY )?({NAME}) (?:\((.*)\) -> (.*) )?\{{$")
_HEAD_END = " {\n"
_CLOSING = re.compile(r"\n\}")
_BLANK_LINES = re.compile(r"[ \t\r\n]*")
_PARAMETER_NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*+: "
_PARAMETER = re.compile(rf"{_PARAMETER_NAME}(.*)")
_PLAIN_PARAMETER = rf"{_PARAMETER_NAME}(?:{'|'.join(ELEMENT_TYPES)})\[(?>(?:{SAFE_SIZES})?)\]"
#: The parameters of a signature where all of them are arrays.
_PLAIN_PARAMETERS = re.compile(f"{_PLAIN_PARAMETER}(?>(?:, {_PLAIN_PARAMETER})*)")


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
        lines: of the body, once one of them has to be read as a whole.
    """

    name: str
    is_entry: bool
    result: Shape | None
    position: int
    line: int
    body_start: int
    body_end: int
    scope: Scope = field(default_factory=Scope)
    lines: list[str] | None = None


class LargeReader:
    """Reads one text.

    Args:
        source: what to read.
        strict: reject what XLA rejects although hlotool understands it.
        reads_literals: long ones, too, before somebody asks for them.
    """

    def __init__(self, source: Source, strict: bool, reads_literals: bool = True) -> None:
        self._source = source
        self._text = source.text
        self._strict = strict
        self._pieces = known_pieces(strict, reads_literals)
        self._lines = Lines(self._pieces)
        self._builder = Builder(source.text, strict)
        self._line = 1
        #: Between operands.
        self._comma = ", "

    def module(self) -> Module | None:
        """The module, or None where the text does not begin like one of XLA's dumps."""
        position = self._first_head()
        if position is None:
            return None
        before = self._text[:position]
        try:
            header = large_header(before, self._builder, self._pieces)
        except (Doubt, TextError):
            return None
        self._lines.begin(header.name)
        self._line += before.count("\n")
        self._comma = ", %" if self._text.find("%", position, self._text.find("=", position)) > 0 else ", "
        while position < len(self._text):
            position = self._computation(position)
        if not self._builder.computations:
            return None
        self._lines.end()
        return finish_module(header, self._builder, self._source.path)

    def _first_head(self) -> int | None:
        """Where the first line stands that opens a computation."""
        text = self._text
        end = text.find(_HEAD_END)
        while end >= 0:
            start = text.rfind("\n", 0, end) + 1
            if _HEAD.fullmatch(text, start, end + len(_HEAD_END) - 1):
                return start
            end = text.find(_HEAD_END, end + 1)
        return None

    # Computations

    def _computation(self, position: int) -> int:
        """Read a computation; returns where the next one begins."""
        mark = self._builder.mark()
        try:
            opened = self._open(position)
            lines = self._lines.between(self._text, opened.body_start, opened.body_end)
            unread = self._instructions(lines, opened)
            _check_names(opened.scope)
            if unread is None:
                return self._close(opened, len(lines))
        except (Doubt, SeveralLines, TextError):
            return self._rest(position, mark)
        return self._remainder(opened, unread) or self._rest(position, mark)

    def _open(self, position: int) -> _OpenComputation:
        """Read the line that opens a computation."""
        text = self._text
        body_start = text.find("\n", position) + 1
        closing = _CLOSING.search(text, body_start)
        head = _HEAD.fullmatch(text, position, body_start - 1)
        if not body_start or closing is None or head is None:
            raise Doubt
        is_entry, name, parameters, result = head.groups()
        if name in RESERVED:
            raise Doubt
        self._check_parameters(parameters)
        shape = self._pieces.shape(result) if result is not None else None
        return _OpenComputation(
            name.removeprefix("%"), bool(is_entry), shape, position, self._line, body_start, closing.start()
        )

    def _close(self, opened: _OpenComputation, count: int) -> int:
        """Add a computation whose `count` lines are read; returns where the next one begins."""
        text = self._text
        end = text.find("\n", opened.body_end + 1)
        end = len(text) if end < 0 else end
        attributes = text[opened.body_end + 2 : end]
        self._finish(opened, self._pieces.parse("attributes", attributes) if attributes else ())
        following = _BLANK_LINES.match(text, end)
        assert following is not None
        self._line += count + text.count("\n", opened.body_end, following.end())
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
        if not declared or _PLAIN_PARAMETERS.fullmatch(declared):
            return
        for piece in split_commas(declared):
            found = _PARAMETER.fullmatch(piece)
            if found is None:
                raise Doubt
            self._pieces.shape(found[1])

    # Instructions

    def _instructions(self, lines: Iterable[Line], opened: _OpenComputation) -> int | None:
        """Add what the lines of a computation say; the number of the first that nothing proves, or None.

        A line costs about a microsecond here, so that everything stands in one loop.
        """
        scope, pieces, builder = opened.scope, self._pieces, self._builder
        by_name, instructions, parameters = scope.by_name, scope.instructions, scope.parameters
        known_name, operand_of = by_name.get, by_name.__getitem__
        known_head, known_metadata = pieces.heads.get, pieces.printed.get
        first, comma = opened.line + 1, self._comma
        for line, parts in enumerate(lines, first):
            root, name, head_text, names, other, attributes, printed, after = parts
            try:
                head = known_head(head_text) or pieces.head(head_text)
                opcode, shape, fewest, most, rule, known, known_before = head
                metadata = literal = number = None
                if printed:
                    metadata = known_metadata(printed) or pieces.metadata(printed)
                    if after:
                        bound = pieces.bound(opcode, attributes.removesuffix(", ") + after)
                    else:
                        bound = known_before.get(attributes) or pieces.bound_before(opcode, attributes)
                else:
                    if after:
                        metadata, attributes = pieces.split_metadata(attributes + after)
                    bound = known.get(attributes) or pieces.bound(opcode, attributes)
                values, pending, predecessors, stated = bound
                if stated is not None:
                    if metadata is not None:
                        raise Doubt
                    metadata = stated
                operands: tuple[Instruction, ...] = ()
                if names:
                    operand = known_name(names)
                    operands = (operand,) if operand else tuple(map(operand_of, names.split(comma)))
                elif opcode == "constant":
                    literal = pieces.literal(other, head_text, shape)
                elif opcode == "parameter":
                    number = parameter_number(other)
                    if number in parameters:
                        raise Doubt
                elif other:
                    operands = self._operands(other, by_name)
                if not fewest <= len(operands) <= most:
                    raise Doubt
                if pending:
                    values = builder.resolved(bound)
                before = builder.predecessors(bound, scope) if predecessors is not None else ()
                if rule is not None and rule(shape, operands, values) is not None:
                    raise Doubt
                if root and scope.root is not None:
                    raise Doubt
            except (Doubt, KeyError, TextError):
                if not self._whole_line(line, opened):
                    return line - first
                continue
            instruction = Instruction(
                name, opcode, shape, operands, values, metadata, literal, number, line, before
            )
            by_name[name] = instruction
            instructions.append(instruction)
            if number is not None:
                parameters[number] = instruction
            if root:
                scope.root = instruction
        return None

    def _operands(self, text: str, by_name: Mapping[str, Instruction]) -> tuple[Instruction, ...]:
        """Operands, which may have a comment and their shape before the name; raises KeyError, Doubt."""
        operands = []
        for piece in split_commas(text):
            shape, blank, name = (after_comment(piece) if piece.startswith("/*") else piece).rpartition(" ")
            operand = by_name[name.removeprefix("%")]
            if blank and not same_array(self._pieces.shape(shape), operand.shape):
                raise Doubt
            operands.append(operand)
        return tuple(operands)

    def _whole_line(self, number: int, opened: _OpenComputation) -> bool:
        """Read a line, by its number, a token at a time; False where that does not prove it either."""
        if opened.lines is None:
            opened.lines = self._text[opened.body_start : opened.body_end].split("\n")
        text = opened.lines[number - opened.line - 1]
        if not text.strip():
            return True
        builder, scope = self._builder, opened.scope
        before, mark = len(scope.instructions), builder.mark()
        try:
            syntax: InstructionSyntax = self._pieces.parse("instruction", text)
            with builder.within(text, number - 1):
                builder.instruction(syntax, scope)
        except (Doubt, TextError):
            scope.truncate(before)
            builder.reset(mark)
            return False
        return True


def _check_names(scope: Scope) -> None:
    """No name stands for two instructions, and none is a word that XLA reserves; else raises Doubt.

    Operands without `%` have been looked up as if no word were reserved.
    """
    if len(scope.by_name) != len(scope.instructions) or not scope.by_name.keys().isdisjoint(RESERVED):
        raise Doubt
