"""Grammar actions for instructions, computations and modules; the parser with all actions."""

from __future__ import annotations

from functools import cache
from typing import Any

from hlotool import grammar
from hlotool.grammar import Token
from hlotool.ir.types import ELEMENT_TYPES, Shape
from hlotool.parse.text.attribute_actions import AttributeActions
from hlotool.parse.text.diagnostics import check_nesting, syntax_error
from hlotool.parse.text.metadata_actions import MetadataActions
from hlotool.parse.text.shape_actions import ShapeActions
from hlotool.parse.text.sharding_actions import ShardingActions
from hlotool.parse.text.syntax import (
    CallSyntax,
    ComputationSyntax,
    FieldRow,
    HeaderSyntax,
    InstructionSyntax,
    LoneInstruction,
    ModuleSyntax,
    Name,
    OperandSyntax,
    Remainder,
    Source,
    TablesSyntax,
    TextError,
)
from hlotool.parse.text.tokens import integer, of_all, of_first, string

#: Words that XLA's lexer takes for something else than names.
_KEYWORDS = (
    "true false inf nan HloModule ENTRY ROOT maximal replicated manual last_tile_dim_replicate shard_as "
    "shard_like unknown unreduced token opaque"
)
RESERVED = frozenset(_KEYWORDS.split()) | frozenset(ELEMENT_TYPES)


class StructureActions:
    """Instructions, computations, modules."""

    def IDENTIFIER(self, token: Token) -> Token:  # noqa: N802 - found by the terminal's name
        if token in RESERVED:
            raise TextError(f"expected a name, found the reserved word {token}", token.start_pos)
        return token

    def name(self, children: list[Token]) -> Name:
        token = children[0]
        text = str(token)
        if token.type == "PERCENT_NAME":
            text = token[1:]
        elif token.type == "COLON_NAME":
            text = token[:-1]
        return Name(text, token.start_pos, token.line)

    # Instructions

    def operation(self, children: list[Any]) -> CallSyntax:
        token, operands = children
        return CallSyntax(str(token), token.start_pos, token.line, operands)

    def parameter(self, children: list[Token]) -> CallSyntax:
        token, number = children
        return CallSyntax("parameter", token.start_pos, token.line, parameter_number=integer(number))

    def constant(self, children: list[Any]) -> CallSyntax:
        token, literal = children
        return CallSyntax("constant", token.start_pos, token.line, literal=literal)

    operands = of_all(tuple)
    unnamed_operand = of_first(lambda shape: OperandSyntax(shape, None, None))

    def operand(self, children: list[Any]) -> OperandSyntax:
        at = next(n for n, child in enumerate(children) if isinstance(child, Name))
        return OperandSyntax(children[0] if at else None, children[at], None, tuple(children[at + 1 :]))

    def element(self, children: list[Token]) -> int:
        return integer(children[-1])

    def nested_operand(self, children: list[Any]) -> OperandSyntax:
        return OperandSyntax(children[0] if len(children) > 1 else None, None, children[-1])

    def instruction(self, children: list[Any]) -> InstructionSyntax:
        is_root = isinstance(children[0], Token)
        name, *shape, call, attributes = children[1:] if is_root else children
        return InstructionSyntax(name, call, shape[0] if shape else None, is_root, attributes)

    # Computations

    def listed(self, children: list[Any]) -> list[Any]:
        """All parts, in order."""
        return children

    body = computations = field_rows = listed

    def declaration(self, children: list[Any]) -> None:
        """Names and shapes of parameters in a signature mean nothing: XLA does not look at them."""

    def signature(self, children: list[Any]) -> Shape:
        result: Shape = children[-1]
        return result

    def computation(self, children: list[Any]) -> ComputationSyntax:
        is_entry = isinstance(children[0], Token)
        name, *result, instructions, attributes = children[1:] if is_entry else children
        return ComputationSyntax(name, instructions, is_entry, result[0] if result else None, attributes)

    def remainder(self, children: list[Any]) -> Remainder:
        continued, *others = children
        end = next(i for i, child in enumerate(others) if isinstance(child, tuple))
        return Remainder(continued, others[:end], others[end], others[end + 1 :])

    # Modules

    def header(self, children: list[Any]) -> HeaderSyntax:
        _, name, attributes, *tables = children
        return HeaderSyntax(name, attributes, tables[0] if tables else None)

    def module(self, children: list[Any]) -> ModuleSyntax:
        if isinstance(children[0], HeaderSyntax):
            return ModuleSyntax(children[1:], children[0])
        return ModuleSyntax(children)

    single_instruction = of_first(LoneInstruction)

    def unnamed_instruction(self, children: list[Any]) -> LoneInstruction:
        shape, call, attributes = children
        name = Name("_", call.position, call.line)
        return LoneInstruction(InstructionSyntax(name, call, shape, False, attributes))

    # Tables of source positions

    def name_rows(self, children: list[Token]) -> dict[int, str]:
        return {integer(number): string(name) for number, name in zip(children[::2], children[1::2])}

    def field_row(self, children: list[Token]) -> FieldRow:
        number, *pairs = children
        fields = {key[:-1]: integer(value) for key, value in zip(pairs[::2], pairs[1::2])}
        if 2 * len(fields) != len(pairs):
            raise TextError("a field repeats", number.start_pos)
        return FieldRow(integer(number), fields, number.start_pos)

    def tables(self, children: list[Any]) -> TablesSyntax:
        return TablesSyntax(*children[1::2])


class Actions(
    StructureActions,
    AttributeActions,
    MetadataActions,
    ShardingActions,
    ShapeActions,
):
    """Every action of the grammar: rule names are method names."""


@cache
def actions(strict: bool) -> Actions:
    """One object for each strictness, so that parsers built with it are kept."""
    return Actions(strict)


def parse_syntax(source: Source, start: str, strict: bool, begin: int = 0) -> Any:
    """Parse the text from `begin` on as the rule `start`; raises HloSyntaxError."""
    try:
        check_nesting(source.text)
        return grammar.parser(start, actions(strict))(source.text, begin)
    except TextError as error:
        raise source.error(error.message, error.position) from error
    except grammar.Unexpected as error:
        raise syntax_error(source, error) from None
