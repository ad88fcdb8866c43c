"""Pieces of a line, each read once: shapes, attributes, metadata, literals that repeat all over a module.

A piece is proved by the parser, or by an expression computed from the grammar; only what is proved is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from hlotool import grammar
from hlotool.ir.attributes import EmbeddedLiteral, EntryLayout, Metadata, RawText
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, Layout, Shape, TupleShape
from hlotool.parse.text.binding import BoundAttributes, bind
from hlotool.parse.text.diagnostics import check_nesting
from hlotool.parse.text.strings import normalized, unquote
from hlotool.parse.text.structure_actions import actions
from hlotool.parse.text.syntax import (
    AnonymousComputation,
    AttributeSyntax,
    CalleeName,
    Name,
    Span,
    TextError,
    TypedLiteral,
    TypedLiteralTuple,
)

if TYPE_CHECKING:
    from hlotool.ir.literal import Literal

#: Where one attribute probably ends and the next begins.
_NEXT_ATTRIBUTE = re.compile(r", (?=[a-z_\-]+=)")
_METADATA_KEY = ", metadata="
#: Strings whose escapes are all right, and numbers that fit in 32 bits.
_SAFE_STRING = r'''"[^"\\\n]*+(?:\\(?:[nrt"'\\]|[0-3][0-7]{2})[^"\\\n]*+)*+"'''
_SAFE_NUMBER = "-?[0-9]{1,9}(?![0-9])"
_METADATA_FIELD = re.compile(f"([a-z_]+)=({_SAFE_STRING}|{_SAFE_NUMBER})")
_ENTRY_LAYOUT = "entry_computation_layout={("
#: Numbers of so many digits fit in 64 bits.
_SAFE_DIGITS = 18
#: Array shapes up to this length are read without the parser.
_LONGEST_PLAIN_SHAPE = 200
#: Literals of so many characters and elements at most are kept.
_SHORT_LITERAL = 64
#: Kept between texts: some tens of megabytes.
_MOST_PIECES = 100_000


class Doubt(Exception):
    """What was cut out is not what it was taken for; the parser decides."""


class Pieces:
    """Memory of pieces: of one text, or of all that are read in a process (`known_pieces`).

    What it gives out is shared by all that ask, so nobody may change it.

    Args:
        strict: as for the whole text.
    """

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._shapes: dict[str, Shape] = {}
        self._attributes: dict[str, AttributeSyntax] = {}
        self._bound: dict[tuple[str, str], BoundAttributes] = {}
        self._tails: dict[str, tuple[Metadata, str]] = {}
        self._literals: dict[tuple[str, str], Literal] = {}
        self._proved = _expressions()

    @property
    def count(self) -> int:
        """How many pieces are kept."""
        others = len(self._bound) + len(self._tails) + len(self._literals)
        return len(self._shapes) + len(self._attributes) + others

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
        is_plain = len(text) <= _LONGEST_PLAIN_SHAPE and not any(mark in text for mark in ":<?-/")
        if is_plain and self._proved.is_array(text):
            shape = _plain_array(text)
            if shape is not None:
                return shape
        if depth == 0:
            check_nesting(text)
        if text.startswith("(") and text.endswith(")") and len(text) > 2:
            return TupleShape(tuple([self.shape(part, depth + 1) for part in split_commas(text[1:-1])]))
        parsed: Shape = self.parse("shape", text)
        return parsed

    # Attributes

    def bound(self, opcode: str, text: str) -> BoundAttributes:
        """The attributes `, a=…, b=…` of an instruction, without metadata."""
        known = self._bound.get((opcode, text))
        if known is None:
            known = self._bound[opcode, text] = bind(opcode, self.attributes(text), 0, self._strict)
        return known

    def attributes(self, text: str) -> list[AttributeSyntax]:
        """The single attributes of `, a=…, b=…`."""
        if not text:
            return []
        if not text.startswith(", ") or "//" in text:
            raise Doubt
        try:
            return [self._attribute(piece) for piece in _NEXT_ATTRIBUTE.split(text[2:])]
        except (Doubt, TextError):
            return [_settled(attribute, text) for attribute in self.parse("attributes", text)]

    def _attribute(self, text: str) -> AttributeSyntax:
        known = self._attributes.get(text)
        if known is None:
            known = self._attributes[text] = self._new_attribute(text)
        return known

    def _new_attribute(self, text: str) -> AttributeSyntax:
        if self._proved.is_callee(text):
            key, _, name = text.partition("=")
            return AttributeSyntax(key, CalleeName(Name(name.removeprefix("%"), 0, 0)), 0)
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

    def tail(self, text: str) -> tuple[Metadata, str]:
        """Metadata at the start of `, metadata={…}…`, and what follows it."""
        known = self._tails.get(text)
        if known is None:
            known = self._tails[text] = self._new_tail(text)
        return known

    def _new_tail(self, text: str) -> tuple[Metadata, str]:
        """As XLA prints it, metadata is decoded when it is looked at; in any other order it is parsed."""
        found = self._proved.canonical_metadata(text)
        if found is not None:
            return Metadata.deferred(_decode_metadata, found[0]), text[found.end() :]
        found = self._proved.metadata(text)
        if found is None:
            raise Doubt
        metadata: Metadata = self.parse("metadata", found[0].removeprefix(_METADATA_KEY))
        return metadata, text[found.end() :]

    # Literals

    def literal(self, text: str, shape_text: str, shape: Shape) -> Literal:
        """The literal in `constant(text)`."""
        known = self._literals.get((shape_text, text))
        if known is not None:
            return known
        if "//" in text:
            raise Doubt
        from hlotool.parse.text.literals import decode_literal  # NumPy only where there are constants

        literal = decode_literal(text, shape)
        # A lone number may stand for gigabytes of zeros.
        is_small = not isinstance(shape, ArrayShape) or shape.size <= _SHORT_LITERAL
        if is_small and len(text) <= _SHORT_LITERAL:
            self._literals[shape_text, text] = literal
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


_known: dict[bool, Pieces] = {}


def known_pieces(strict: bool) -> Pieces:
    """The pieces of what was read before: stages of one module say nearly the same."""
    known = _known.get(strict)
    if known is None or known.count > _MOST_PIECES:
        known = _known[strict] = Pieces(strict)
    return known


def forget_pieces() -> None:
    """Let the next text be read as if it were the first."""
    _known.clear()


@dataclass(frozen=True, slots=True)
class _Expressions:
    """Compiled expressions that prove pieces.

    Attributes:
        is_array: an array shape.
        is_callee: `to_apply=%name` and its like.
        metadata: `, metadata={…}` at the beginning of a text.
        canonical_metadata: the same in XLA's order, with nothing that could be wrong in a value.
    """

    is_array: Callable[[str], object]
    is_callee: Callable[[str], object]
    metadata: Callable[[str], re.Match[str] | None]
    canonical_metadata: Callable[[str], re.Match[str] | None]


@cache
def _expressions() -> _Expressions:
    callee = grammar.terminal("COMPUTATION_KEY") + grammar.terminal("PERCENT_NAME")
    return _Expressions(
        re.compile(grammar.pattern("array_shape")).fullmatch,
        re.compile(callee).fullmatch,
        re.compile(_METADATA_KEY + grammar.pattern("metadata")).match,
        re.compile(_canonical_metadata()).match,
    )


def _canonical_metadata() -> str:
    """Each key of the grammar at most once, in the order of Metadata's fields, which is XLA's."""
    strings, numbers = (re.compile(grammar.terminal(f"META_{kind}_KEY")) for kind in ("STRING", "INT"))
    parts = []
    for field in fields(Metadata):
        if strings.fullmatch(f"{field.name}="):
            parts.append(rf"(?:{field.name}={_SAFE_STRING} ?)?+")
        elif numbers.fullmatch(f"{field.name}="):
            parts.append(rf"(?:{field.name}={_SAFE_NUMBER} ?)?+")
    return _METADATA_KEY + r"\{" + "".join(parts) + r"\}"


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


def _plain_array(text: str) -> ArrayShape | None:
    """An array shape that is proved to be one, with at most an order of dimensions as its layout."""
    type_end, dims_end = text.index("["), text.index("]")
    element_type = ELEMENT_TYPES.get(text[:type_end])
    sizes, order = text[type_end + 1 : dims_end], text[dims_end + 2 : -1]
    dims = tuple(map(int, sizes.split(","))) if sizes else ()
    dimensions = tuple(map(int, order.split(","))) if order else ()
    if element_type is None or (order and len(dimensions) != len(dims)):
        return None
    if max((*dims, *dimensions), default=0) >= 10**_SAFE_DIGITS:
        return None
    return ArrayShape(element_type, dims, (), Layout(dimensions) if order else None)


def _decode_metadata(text: str) -> Metadata:
    """Metadata of a text that is proved to be some."""
    values: dict[str, Any] = {}
    for key, value in _METADATA_FIELD.findall(text, len(_METADATA_KEY)):
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
