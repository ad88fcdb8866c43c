"""Pieces of a line, each read once: shapes, attributes, metadata, literals that repeat all over a module.

A piece is proved by the parser, or by an expression computed from the grammar; only what is proved is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache, lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotool import grammar
from hlotool.ir.attributes import EmbeddedLiteral, EntryLayout, Metadata, RawText
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, Layout, Shape, TupleShape
from hlotool.parser.text.attributes import BoundAttributes, bind
from hlotool.parser.text.diagnostics import check_nesting
from hlotool.parser.text.hlo_parser import actions
from hlotool.parser.text.plain_attributes import plain_attribute
from hlotool.parser.text.single_opcodes import RULES, Rule
from hlotool.parser.text.syntax import (
    AnonymousComputation,
    AttributeSyntax,
    Span,
    TextError,
    TypedLiteral,
    TypedLiteralTuple,
)
from hlotool.parser.tokens import SAFE_STRING, normalized, unquote

if TYPE_CHECKING:
    from hlotool.ir.arrays import Literal
    from hlotool.parser.text.statements import Stage

#: Where one attribute probably ends and the next begins.
_NEXT_ATTRIBUTE = re.compile(r", (?=[a-z_\-]+=)")
METADATA_KEY = ", metadata="
_METADATA = METADATA_KEY + "{"
#: Numbers that fit in 32 bits.
SAFE_NUMBER = "-?[0-9]{1,9}(?![0-9])"
_METADATA_FIELD = re.compile(f"([a-z_]+)=({SAFE_STRING}|{SAFE_NUMBER})")
_ENTRY_LAYOUT = "entry_computation_layout={("
#: Numbers that fit in 64 bits.
SAFE_SIZES = "[0-9]{1,18}(?>(?:,[0-9]{1,18})*)"
#: Type, sizes that fit in 64 bits, order of the dimensions.
_PLAIN_ARRAY = re.compile(rf"([a-z0-9]+)\[((?>(?:{SAFE_SIZES})?))\](?>(?:\{{({SAFE_SIZES})\}})?)")
#: Literals of so many characters and elements at most are kept.
_SHORT_LITERAL = 64
#: No number of a parameter has more digits.
_MOST_DIGITS = 9
#: Tuples that are nested deeper than any program needs are left to the parser.
_DEEPEST = 50
#: Kept between texts: some tens of megabytes.
_MOST_PIECES = 100_000


class Doubt(Exception):
    """What was cut out is not what it was taken for; the parser decides."""


class SeveralLines(Exception):
    """What was taken for a line has more of them, in a string: the lines after it were counted wrongly."""


#: Attributes met on an opcode, by their text.
Known: TypeAlias = "dict[str, BoundAttributes]"
#: What follows from an opcode: the least and the greatest number of operands; what is demanded beyond that;
#: attributes that stood alone, and those that metadata followed, with the comma and the blank before it.
OfOpcode: TypeAlias = "tuple[int, float, Rule | None, Known, Known]"
#: What a line says before its operands: the opcode, the shape, and what follows from the opcode.
Head: TypeAlias = "tuple[str, Shape, int, float, Rule | None, Known, Known]"


class Pieces:
    """Memory of pieces: of one text, or of all that are read in a process (`known_pieces`).

    What it gives out is shared by all that ask, so it must not be changed.

    Args:
        strict: as for the whole text.
        reads_literals: long ones, too, before somebody asks for them.

    Attributes:
        heads: what `head` gave out, by text.
        printed: what `metadata` gave out, by text.
        last_stage: the lines of the text that was read last.
    """

    def __init__(self, strict: bool, reads_literals: bool = True) -> None:
        self._strict = strict
        self._reads_literals = reads_literals
        self._shapes: dict[str, Shape] = {}
        self.heads: dict[str, Head] = {}
        self._attributes: dict[str, AttributeSyntax] = {}
        self._opcodes: dict[str, OfOpcode] = {}
        self.printed: dict[str, Metadata] = {}
        self._literals: dict[tuple[str, str], Literal] = {}
        self.last_stage: Stage | None = None

    @property
    def count(self) -> int:
        """How many pieces are kept."""
        shapes_and_attributes = len(self._shapes) + len(self.heads) + len(self._attributes)
        bound = sum(len(alone) + len(before) for *_, alone, before in self._opcodes.values())
        return shapes_and_attributes + bound + len(self.printed) + len(self._literals)

    # Shapes

    def shape(self, text: str, depth: int = 0) -> Shape:
        """A shape in `depth` tuples, perhaps after a comment such as `/*index=5*/`."""
        known = self._shapes.get(text)
        if known is None:
            known = self._shapes[text] = self._new_shape(text, depth)
        return known

    def _new_shape(self, text: str, depth: int) -> Shape:
        if text.startswith("/*"):
            return self.shape(after_comment(text), depth + 1)
        plain = _PLAIN_ARRAY.fullmatch(text)
        if plain is not None:
            shape = _plain_array(*plain.groups())
            if shape is not None:
                return shape
        if text.startswith("(") and text.endswith(")") and len(text) > 2 and depth < _DEEPEST:
            known, parts = self._shapes, split_commas(text[1:-1])
            return TupleShape(tuple([known.get(part) or self.shape(part, depth + 1) for part in parts]))
        parsed: Shape = self.parse("shape", text)
        return parsed

    # What an instruction is

    def head(self, text: str) -> Head:
        """A shape and an opcode: `f32[2]{0} add`."""
        shape, _, opcode = text.rpartition(" ")
        follows = self._opcodes.get(opcode) or self._opcode(opcode)
        head = self.heads[text] = (opcode, self._shapes.get(shape) or self.shape(shape), *follows)
        return head

    def _opcode(self, opcode: str) -> OfOpcode:
        row = OPCODES.get(opcode)
        if row is None:
            raise Doubt
        most = inf if row.max_operands is None else row.max_operands
        known = self._opcodes[opcode] = (row.min_operands, most, RULES.get(opcode), {}, {})
        return known

    # Attributes

    def bound(self, opcode: str, text: str) -> BoundAttributes:
        """The attributes `, a=…, b=…` of an instruction, without metadata."""
        *_, known, _ = self._opcodes.get(opcode) or self._opcode(opcode)
        bound = known.get(text)
        if bound is None:
            bound = known[text] = bind(opcode, self.attributes(text), 0, self._strict)
        return bound

    def bound_before(self, opcode: str, text: str) -> BoundAttributes:
        """The attributes `, a=…, b=…, ` that metadata follows."""
        *_, before = self._opcodes[opcode]
        bound = before[text] = self.bound(opcode, text.removesuffix(", "))
        return bound

    def attributes(self, text: str) -> list[AttributeSyntax]:
        """The single attributes of `, a=…, b=…`."""
        if not text:
            return []
        if not text.startswith(", ") or "//" in text:
            raise Doubt
        pieces = _NEXT_ATTRIBUTE.split(text[2:]) if ", " in text[2:] else [text[2:]]
        known = self._attributes
        try:
            return [known.get(piece) or self._attribute(piece) for piece in pieces]
        except (Doubt, TextError):
            return [_settled(attribute, text) for attribute in self.parse("attributes", text)]

    def _attribute(self, text: str) -> AttributeSyntax:
        attribute = self._attributes[text] = plain_attribute(text) or self._other_attribute(text)
        return attribute

    def _other_attribute(self, text: str) -> AttributeSyntax:
        if text.startswith(_ENTRY_LAYOUT) and text.endswith("}"):
            parameters, arrow, result = text[len(_ENTRY_LAYOUT) : -1].rpartition(")->")
            if arrow:
                shapes = tuple(map(self.shape, split_commas(parameters))) if parameters else ()
                return AttributeSyntax(_ENTRY_LAYOUT[:-3], EntryLayout(shapes, self.shape(result)), 0)
        parsed = self.parse("attributes", ", " + text)
        if len(parsed) != 1:
            raise Doubt
        return _settled(parsed[0], ", " + text)

    # Metadata

    def metadata(self, text: str) -> Metadata:
        """Metadata of a text that `printed_metadata` matches, which is decoded when it is looked at."""
        # The quick alternative takes a string up to the next quote, whatever stands before that.
        if "\n" in text:
            raise SeveralLines
        if "\\" in text and not _printed_metadata()(text):
            raise Doubt
        known = self.printed[text] = Metadata.deferred(_decode_metadata, text)
        return known

    def split_metadata(self, attributes: str) -> tuple[Metadata | None, str]:
        """The metadata in `, a=…, metadata={…}, b=…`, written in any way, and the attributes around it."""
        at = attributes.find(_METADATA)
        if at < 0:
            return None, attributes
        found = _metadata()(attributes, at)
        if found is None:
            raise Doubt
        metadata: Metadata = self.parse("metadata", found[0].removeprefix(METADATA_KEY))
        return metadata, attributes[:at] + attributes[found.end() :]

    # Literals

    def literal(self, text: str, head: str, shape: Shape) -> Literal:
        """The literal in `constant(text)`, where `head` stands before the parenthesis."""
        known = self._literals.get((head, text))
        if known is not None:
            return known
        if "//" in text:
            raise Doubt
        # NumPy only where there are constants.
        from hlotool.parser.text.literals import decode_literal, is_plain, unread_literal

        if not self._reads_literals and len(text) > _SHORT_LITERAL and isinstance(shape, ArrayShape):
            return unread_literal(text, shape)
        if isinstance(shape, ArrayShape) and is_plain(text, shape):
            literal = unread_literal(text, shape)
        else:
            literal = decode_literal(text, shape)
        # A lone number may stand for gigabytes of zeros.
        is_small = not isinstance(shape, ArrayShape) or shape.size <= _SHORT_LITERAL
        if is_small and len(text) <= _SHORT_LITERAL:
            self._literals[head, text] = literal
        return literal

    def parse(self, start: str, text: str) -> Any:
        """What the parser makes of a piece; a comment up to the end of the line would hide what follows."""
        if "//" in text and start == "shape":
            raise Doubt
        check_nesting(text)
        try:
            return grammar.parser(start, actions(self._strict))(text)
        except grammar.Unexpected:
            raise Doubt from None


_known: dict[tuple[bool, bool], Pieces] = {}


def known_pieces(strict: bool, reads_literals: bool = True) -> Pieces:
    """The pieces of what was read before: stages of one module say nearly the same.

    Lines whose literals have not been read prove nothing to those who want them read.
    """
    known = _known.get((strict, reads_literals))
    if known is None or known.count > _MOST_PIECES:
        known = _known[strict, reads_literals] = Pieces(strict, reads_literals)
    return known


def forget_pieces() -> None:
    """Let the next text be read as if it were the first."""
    _known.clear()
    _layout.cache_clear()
    parameter_number.cache_clear()


@cache
def _metadata() -> Callable[[str, int], re.Match[str] | None]:
    """What proves `, metadata={…}` somewhere in a text."""
    return re.compile(METADATA_KEY + grammar.pattern("metadata")).match


@cache
def _printed_metadata() -> Callable[[str], object]:
    """What proves all of what `printed_metadata` matches."""
    return re.compile(rf"metadata=\{{{_printed_fields()}\}}").fullmatch


def printed_metadata() -> str:
    """An expression for `metadata={…}` as XLA prints it; `Pieces.metadata` proves what it matches.

    The quick alternative is for what XLA prints today.
    """
    return rf'metadata=\{{(?>op_name="[^"]*+"(?> stack_frame_id={SAFE_NUMBER}|)\}}|{_printed_fields()}\}})'


def _printed_fields() -> str:
    """Each key of the grammar at most once, in the order of Metadata's fields, which is XLA's."""
    strings, numbers = (re.compile(grammar.terminal(f"META_{kind}_KEY")) for kind in ("STRING", "INT"))
    parts = []
    for field in fields(Metadata):
        if strings.fullmatch(f"{field.name}="):
            parts.append(rf"(?>{field.name}={SAFE_STRING} ?|)")
        elif numbers.fullmatch(f"{field.name}="):
            parts.append(rf"(?>{field.name}={SAFE_NUMBER} ?|)")
    return "".join(parts)


def split_commas(text: str) -> list[str]:
    """Split at `, ` outside parentheses."""
    parts = text.split(", ")
    if "(" not in text:
        return parts
    joined: list[str] = []
    depth = start = 0
    for number, part in enumerate(parts, 1):
        depth += part.count("(") - part.count(")")
        if depth <= 0:
            joined.append(", ".join(parts[start:number]))
            start = number
    return [*joined, ", ".join(parts[start:])] if start < len(parts) else joined


def after_comment(text: str) -> str:
    """What follows the comment at the beginning."""
    end = text.find("*/")
    if end < 0:
        raise Doubt
    return text[end + 2 :]


def _plain_array(type_name: str, sizes: str, order: str | None) -> ArrayShape | None:
    """An array shape, its layout at most an order of dimensions; None where the parser decides."""
    element_type = ELEMENT_TYPES.get(type_name)
    dims = tuple(map(int, sizes.split(","))) if sizes else ()
    layout = _layout(order) if order else None
    if element_type is None or (layout is not None and len(layout.minor_to_major) != len(dims)):
        return None
    return ArrayShape(element_type, dims, (), layout)


@lru_cache(maxsize=1024)
def parameter_number(text: str) -> int:
    """The number in `parameter(…)`."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Doubt
    return int(text)


@lru_cache(maxsize=1024)
def _layout(order: str) -> Layout:
    return Layout(tuple(map(int, order.split(","))))


def _decode_metadata(text: str) -> Metadata:
    """Metadata of a text that is proved to be some."""
    values: dict[str, Any] = {}
    for key, value in _METADATA_FIELD.findall(text, len("metadata=")):
        values[key] = unquote(value) if value[0] == '"' else int(value)
    return Metadata(**values)


def _settled(attribute: AttributeSyntax, text: str) -> AttributeSyntax:
    """An attribute whose value no longer refers to `text`."""
    key, value, _ = attribute
    if isinstance(value, Span):
        value = RawText(normalized(text[value.start : value.end]))
    elif isinstance(value, (AnonymousComputation, TypedLiteral, TypedLiteralTuple, EmbeddedLiteral)) or (
        isinstance(value, tuple) and any(isinstance(part, AnonymousComputation) for part in value)
    ):
        raise Doubt
    return AttributeSyntax(key, value, 0)
