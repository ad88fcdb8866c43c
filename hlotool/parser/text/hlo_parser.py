"""The parser with all grammar actions, those for instructions to modules among them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hlotool import grammar
from hlotool.grammar import Token
from hlotool.ir.attributes import BackendConfig, FrontendAttributes, Metadata, Statistics
from hlotool.ir.printed_annotations import quote
from hlotool.ir.types import (
    COMBINE,
    ELEMENT_TYPES,
    OPAQUE,
    TOKEN,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    Layout,
    Shape,
    SplitConfig,
    TupleShape,
)
from hlotool.parser.text.attribute_actions import (
    Action,
    AttributeActions,
    integer,
    integers,
    of_all,
    of_first,
    real,
    string,
)
from hlotool.parser.text.diagnostics import check_nesting, syntax_error
from hlotool.parser.text.sharding_actions import ShardingActions
from hlotool.parser.text.syntax import (
    AttributeSyntax,
    CallSyntax,
    ComputationSyntax,
    FieldRow,
    HeaderSyntax,
    InstructionSyntax,
    LoneInstruction,
    ModuleSyntax,
    Name,
    OperandSyntax,
    OtherValue,
    Remainder,
    Source,
    TablesSyntax,
    TextError,
)

# Grammar actions for shapes and layouts.

#: The parts after the colon of a layout, in the order that XLA demands: that of the fields.
_LAYOUT_ORDER = ("dim_levels", *Layout.__struct_fields__)


def _part(name: str, value: Callable[[Token], object]) -> Action:
    """The action for a part of a layout that is one token in parentheses; None where it ends before that."""
    return of_all(lambda parts: (name, value(parts[1]) if len(parts) > 1 else None))


class ShapeActions:
    """Shapes and layouts.

    Args:
        strict: reject what XLA's parser rejects although hlotool understands it.
    """

    def __init__(self, strict: bool) -> None:
        self.strict = strict

    def dimension(self, children: list[Token]) -> tuple[int, bool]:
        size = integer(children[0])
        if size < 0:
            raise TextError(
                f"a dimension cannot be negative, and this is {children[0]}", children[0].start_pos
            )
        return size, False

    def bounded_dimension(self, children: list[Token]) -> tuple[int, bool]:
        return self.dimension(children[1:])[0], True

    unbounded_dimension = of_all(lambda _: (UNBOUNDED, True))

    def array_shape(self, children: list[Any]) -> Shape:
        type_token: Token = children[0]
        layout = children.pop() if isinstance(children[-1], Layout) else None
        dimensions = children[1:]
        if type_token in ("token", "opaque"):
            if dimensions or layout is not None:
                raise TextError(f"{type_token}[] takes neither dimensions nor a layout", type_token.start_pos)
            return TOKEN if type_token == "token" else OPAQUE
        sizes = tuple(size for size, _ in dimensions)
        dynamic = tuple(flag for _, flag in dimensions)
        if layout is not None and len(layout.minor_to_major) != len(sizes):
            raise TextError(
                f"the layout has {len(layout.minor_to_major)} dimensions, the shape {len(sizes)}",
                type_token.start_pos,
            )
        return ArrayShape(ELEMENT_TYPES[type_token], sizes, dynamic if any(dynamic) else (), layout)

    tuple_shape = of_all(TupleShape)

    def buffer_shape(self, children: list[Any]) -> BufferShape:
        if not isinstance(children[1], ArrayShape):
            raise TextError(f"a buffer holds an array, not {children[1]}", children[0].start_pos)
        return BufferShape(children[1])

    def layout(self, children: list[Any]) -> Layout:
        brace, minor_to_major, *properties = children
        names = [name for name, _ in properties]
        if names != sorted(set(names), key=_LAYOUT_ORDER.index):
            raise TextError("parts of a layout repeat or are out of order", brace.start_pos)
        if self.strict and "physical_shape" in names:
            raise TextError("XLA no longer takes a physical shape P(…) in a layout", brace.start_pos)
        stated = {name: value for name, value in properties if name != "dim_levels" and value is not None}
        made = Layout(minor_to_major, **stated)
        if any(COMBINE < size < 0 for tile in made.tiles for size in tile) or made.tail_padding_alignment < 1:
            raise TextError("a size of a tile is negative, or that of L(…) below 1", brace.start_pos)
        return made

    minor_to_major = of_all(integers)
    dim_level_types = of_all(lambda levels: ("dim_levels", levels), skipped=1)
    tiles = of_all(lambda tiles: ("tiles", tiles or ((),)), skipped=1)
    tile = of_all(tuple)
    tile_size = of_first(lambda size: COMBINE if size == "*" else integer(size))
    tail_padding = _part("tail_padding_alignment", integer)
    index_type = _part("index_type", str)
    pointer_type = _part("pointer_type", str)
    element_bits = _part("element_bits", integer)
    memory_space = _part("memory_space", integer)

    physical_shape = of_all(lambda parts: ("physical_shape", parts[1]))
    metadata_prefix = _part("metadata_prefix_bytes", integer)
    split_configs = of_all(lambda configs: ("split_configs", tuple(filter(None, configs))), skipped=1)

    def split_config(self, children: list[Token]) -> SplitConfig | None:
        return SplitConfig(integer(children[0]), integers(children[1:])) if children else None


# Grammar actions for metadata, frontend attributes, backend configs, statistics.

_INT32_LIMIT = 1 << 31
#: xla_data.proto, ProfileType.
_PROFILE_TYPES = range(4)


class MetadataActions:
    """What annotates instructions.

    Args:
        strict: reject metadata keys that XLA rejects.
    """

    strict: bool

    def metadata(self, children: list[AttributeSyntax]) -> Metadata:
        known: dict[str, Any] = {}
        obsolete: list[tuple[str, str]] = []
        seen: set[str] = set()
        for key, value, position in children:
            if key in seen:
                raise TextError(f"metadata says {key} twice", position)
            seen.add(key)
            if isinstance(value, OtherValue):
                obsolete.append((key, value.text))
            else:
                known[key] = value
        return Metadata(**known, obsolete=tuple(obsolete))

    def metadata_field(self, children: list[Any]) -> AttributeSyntax:
        token, value = children
        key, position = token[:-1], token.start_pos
        if isinstance(value, tuple):
            if not set(value) <= set(_PROFILE_TYPES):
                raise TextError(f"there is no profile type {max(value)}", position)
            return AttributeSyntax(key, value, position)
        if value.type == "STRING":
            return AttributeSyntax(key, string(value), position)
        number = integer(value)
        if not -_INT32_LIMIT <= number < _INT32_LIMIT:
            raise TextError(f"{key}={value} does not fit in 32 bits", position)
        return AttributeSyntax(key, number, position)

    def obsolete_field(self, children: list[Any]) -> AttributeSyntax:
        token, value = children
        if self.strict:
            raise TextError(f"metadata takes no {token[:-1]}", token.start_pos)
        return AttributeSyntax(token[:-1], value, token.start_pos)

    other_value = of_first(lambda token: OtherValue(str(token)))
    ints = of_all(integers)

    def raw(self, children: list[Token]) -> OtherValue:
        return OtherValue("".join(children))

    def frontend_attribute(self, children: list[Any]) -> tuple[str, str]:
        key, value = children
        if isinstance(value, OtherValue):
            return key[:-1], value.text
        content = string(value)
        return key[:-1], str(value) if value.startswith('"') else quote(content)

    def frontend_attributes(self, children: list[tuple[str, str]]) -> FrontendAttributes:
        """Where a key repeats, the last value counts, as in XLA."""
        return FrontendAttributes(tuple(dict(children).items()))

    backend_config = of_first(lambda token: BackendConfig(string(token), quoted=True))
    raw_backend_config = of_first(lambda raw: BackendConfig(raw.text))

    def statistics(self, children: list[Token]) -> Statistics:
        if not children:
            return Statistics(0, ())
        pairs = zip(children[2::2], children[3::2])
        return Statistics(integer(children[1]), tuple((key[:-1], real(value)) for key, value in pairs))


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
