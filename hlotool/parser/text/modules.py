"""Headers and whole modules: from syntax records to Module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from hlotool.ir.attributes import (
    AttributeValue,
    EntryLayout,
    FileLocation,
    StackFrame,
    StackFrameTables,
)
from hlotool.ir.module import Module
from hlotool.ir.types import Shape, ShapeIndex, TupleShape, strip_layouts, subshape
from hlotool.ir.walk import check_call_depth
from hlotool.parser.text.builder import Builder
from hlotool.parser.text.syntax import (
    AttributeSyntax,
    FieldRow,
    HeaderSyntax,
    LoneInstruction,
    ModuleSyntax,
    Scope,
    Source,
    Span,
    TablesSyntax,
    TextError,
)

#: Attributes of the HloModule line. XLA: ParseHloModule.
MODULE_ATTRIBUTES = frozenset(
    {
        "alias_passthrough_params", "allow_spmd_sharding_propagation_to_output",
        "allow_spmd_sharding_propagation_to_parameters", "buffer_donor", "entry_computation_layout",
        "frontend_attributes", "input_output_alias", "is_scheduled", "num_partitions",
        "origin_recovery_table", "replica_count",
    }
)  # fmt: skip

_ENTRY_LAYOUT = "entry_computation_layout"
_LOCATION_FIELDS = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")
_FRAME_FIELDS = ("file_location_id", "parent_frame_id")


def build_module(syntax: ModuleSyntax | LoneInstruction, source: Source, strict: bool) -> Module:
    """The module of a whole text; raises TextError."""
    builder = Builder(source.text, strict)
    if isinstance(syntax, LoneInstruction):
        return _module_of_one(syntax, builder, source.path)
    header = read_header(syntax.header, builder) if syntax.header is not None else None
    for computation in syntax.computations:
        builder.computation(computation)
    return finish_module(header, builder, source.path)


@dataclass(slots=True)
class Header:
    """What a module has besides computations.

    Attributes:
        name: of the module.
        attributes: of the HloModule line.
        stack_frames: the tables.
        position: of the attributes, for errors that show when the computations are known.
    """

    name: str
    attributes: Mapping[str, AttributeValue]
    stack_frames: StackFrameTables | None
    position: int


def finish_module(header: Header | None, builder: Builder, path: str | None) -> Module:
    """Put the computations under the header, or under a default one; raises TextError."""
    entry = builder.finish()
    try:
        check_call_depth(builder.computations)
    except ValueError as error:
        raise TextError(str(error), None) from None
    if header is None:
        return Module(f"module_{entry.name}", builder.computations, entry, path=path)
    _check_aliases(header, entry.root.shape)
    attributes = _with_the_result(header.attributes, entry.root.shape)
    return Module(header.name, builder.computations, entry, attributes, header.stack_frames, path)


def _with_the_result(attributes: Mapping[str, AttributeValue], result: Shape) -> Mapping[str, AttributeValue]:
    """Attributes whose entry layout has the result as it is where it says a tuple of just that.

    XLA takes both for one: JAX once printed `XlaComputation`s whose result is made a tuple when they are
    compiled.
    """
    layout = attributes.get(_ENTRY_LAYOUT)
    if not isinstance(layout, EntryLayout) or not isinstance(layout.result, TupleShape):
        return attributes
    stated = layout.result.elements
    if (
        isinstance(result, TupleShape)
        or len(stated) != 1
        or strip_layouts(stated[0]) != strip_layouts(result)
    ):
        return attributes
    return {**attributes, _ENTRY_LAYOUT: replace(layout, result=stated[0])}


def _check_aliases(header: Header, result: Shape) -> None:
    """Aliases refer to parts that the result has, each once."""
    aliases: Any = header.attributes.get("input_output_alias", ())
    seen: set[ShapeIndex] = set()
    for alias in aliases:
        output = f"output {{{','.join(map(str, alias.output_index))}}}"
        try:
            subshape(result, alias.output_index)
        except (IndexError, TypeError):
            raise TextError(f"input_output_alias: the module has no {output}", header.position) from None
        if alias.output_index in seen:
            raise TextError(f"input_output_alias: two aliases of {output}", header.position)
        seen.add(alias.output_index)


def _module_of_one(syntax: LoneInstruction, builder: Builder, path: str | None) -> Module:
    """XLA takes a text that is one instruction for a scheduled module; unknown operands become parameters."""
    scope = Scope(makes_parameters=True)
    instruction = builder.instruction(syntax.instruction, scope)
    computation = scope.finish("_", instruction.line, None)
    builder.add_computation(computation, True, None, (), None)
    return Module("_", builder.computations, builder.finish(), {"is_scheduled": True}, path=path)


def read_header(syntax: HeaderSyntax, builder: Builder) -> Header:
    """Check and resolve the HloModule line and the tables."""
    attributes = read_module_attributes(syntax.attributes, builder)
    stack_frames = read_tables(syntax.tables) if syntax.tables is not None else None
    aliases = (at for key, _, at in syntax.attributes if key == "input_output_alias")
    return Header(syntax.name.text, attributes, stack_frames, next(aliases, syntax.name.position))


def read_module_attributes(
    attributes: Iterable[AttributeSyntax], builder: Builder
) -> dict[str, AttributeValue]:
    """The attributes of the HloModule line."""
    values: dict[str, AttributeValue] = {}
    for key, value, position in attributes:
        if key not in MODULE_ATTRIBUTES:
            allowed = ", ".join(sorted(MODULE_ATTRIBUTES))
            raise TextError(f'unexpected module attribute "{key}"; a module takes {allowed}', position)
        if key in values:
            raise TextError(f"the attribute {key} is given twice", position)
        values[key] = builder.carried(value) if isinstance(value, Span) else value
    return values


def read_tables(syntax: TablesSyntax) -> StackFrameTables:
    """The tables of source positions."""
    return StackFrameTables(
        syntax.file_names,
        syntax.function_names,
        {row.number: FileLocation(*_fields(row, _LOCATION_FIELDS)) for row in syntax.file_locations},
        {row.number: StackFrame(*_fields(row, _FRAME_FIELDS)) for row in syntax.stack_frames},
    )


def _fields(row: FieldRow, names: tuple[str, ...]) -> list[int]:
    if set(row.fields) != set(names):
        raise TextError(f"a row of this table has the fields {', '.join(names)}", row.position)
    return [row.fields[name] for name in names]
