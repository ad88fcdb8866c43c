"""ShapeProto and LayoutProto as shapes of the IR, printed as XLA prints them, and the other way round.

A shape without layout is written with the row-major one that its text means: XLA's text parser does the same.
"""

from __future__ import annotations

from hlotool.errors import ProtoError
from hlotool.ir.attributes import EntryLayout
from hlotool.ir.types import (
    ELEMENT_TYPES,
    OPAQUE,
    TOKEN,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    ElementType,
    Layout,
    OpaqueShape,
    Shape,
    SplitConfig,
    TokenShape,
    TupleShape,
)
from hlotool.parse.proto.schema import Message, enum_names, enum_numbers

#: Size of a dimension of unknown and unbounded size (C++: Shape::kUnboundedSize).
UNBOUNDED_SIZE = -(2**63)


def read_shape(proto: Message) -> Shape:
    """The shape that a ShapeProto describes; raises ProtoError for an element type that is not known."""
    name = type_name(proto.element_type)
    if name == "tuple":
        return TupleShape(tuple(map(read_shape, proto.tuple_shapes)))
    if name == "token":
        return TOKEN
    if name == "opaque_type":
        return OPAQUE
    if name == "buffer":
        return BufferShape(_read_array(proto.tuple_shapes[0]))
    return _read_array(proto)


def read_program_shape(proto: Message) -> EntryLayout:
    """Parameters and result of a ProgramShapeProto."""
    return EntryLayout(tuple(map(read_shape, proto.parameters)), read_shape(proto.result))


def type_name(number: int) -> str:
    """Name in HLO text of a value of PrimitiveType: `f32`, `tuple`."""
    return enum_names("PrimitiveType").get(number, f"type {number}").lower()


def _element_type(number: int) -> ElementType:
    name = type_name(number)
    if name not in ELEMENT_TYPES:
        raise ProtoError(f"element type {name} is not known")
    return ELEMENT_TYPES[name]


def _read_array(proto: Message) -> ArrayShape:
    dims = tuple(UNBOUNDED if size == UNBOUNDED_SIZE else size for size in proto.dimensions)
    dynamic = tuple(proto.is_dynamic_dimension)
    if dynamic and len(dynamic) != len(dims):
        raise ProtoError(f"a shape has {len(dims)} dimensions but {len(dynamic)} dynamic flags")
    layout = _read_layout(proto.layout) if proto.HasField("layout") else None
    if not dims and layout is not None and layout.is_plain:
        layout = None  # as in text, where a scalar shows a layout only if there is something to say
    if layout is not None and sorted(layout.minor_to_major) != list(range(len(dims))):
        raise ProtoError(f"a shape has {len(dims)} dimensions but the layout {layout}")
    return ArrayShape(_element_type(proto.element_type), dims, dynamic if any(dynamic) else (), layout)


def _read_layout(proto: Message) -> Layout:
    return Layout(
        minor_to_major=tuple(proto.minor_to_major),
        tiles=tuple(tuple(tile.dimensions) for tile in proto.tiles),
        tail_padding_alignment=proto.tail_padding_alignment_in_elements or 1,
        index_type=_pointer_type(proto.index_primitive_type),
        pointer_type=_pointer_type(proto.pointer_primitive_type),
        element_bits=proto.element_size_in_bits,
        memory_space=proto.memory_space,
        split_configs=tuple(SplitConfig(c.dimension, tuple(c.split_indices)) for c in proto.split_configs),
        physical_shape=read_shape(proto.physical_shape) if proto.HasField("physical_shape") else None,
        metadata_prefix_bytes=proto.dynamic_shape_metadata_prefix_bytes,
    )


def _pointer_type(number: int) -> str | None:
    return type_name(number) if number else None


def write_shape(proto: Message, shape: Shape) -> None:
    """Fill a ShapeProto."""
    types = enum_numbers("PrimitiveType")
    if isinstance(shape, TupleShape):
        proto.element_type = types["TUPLE"]
        for element in shape.elements:
            write_shape(proto.tuple_shapes.add(), element)
    elif isinstance(shape, TokenShape):
        proto.element_type = types["TOKEN"]
    elif isinstance(shape, OpaqueShape):
        proto.element_type = types["OPAQUE_TYPE"]
    elif isinstance(shape, BufferShape):
        proto.element_type = types["BUFFER"]
        write_shape(proto.tuple_shapes.add(), shape.array)
    else:
        _write_array(proto, shape)


def _write_array(proto: Message, shape: ArrayShape) -> None:
    proto.element_type = enum_numbers("PrimitiveType")[shape.element_type.value.upper()]
    proto.dimensions.extend(UNBOUNDED_SIZE if size == UNBOUNDED else size for size in shape.dims)
    proto.is_dynamic_dimension.extend(map(shape.is_dynamic_dimension, range(shape.rank)))
    _write_layout(proto.layout, shape.layout_or_default)


def _write_layout(proto: Message, layout: Layout) -> None:
    types = enum_numbers("PrimitiveType")
    proto.minor_to_major.extend(layout.minor_to_major)
    for tile in layout.tiles:
        proto.tiles.add().dimensions.extend(tile)
    proto.tail_padding_alignment_in_elements = layout.tail_padding_alignment
    if layout.index_type:
        proto.index_primitive_type = types[layout.index_type.upper()]
    if layout.pointer_type:
        proto.pointer_primitive_type = types[layout.pointer_type.upper()]
    proto.element_size_in_bits = layout.element_bits
    proto.memory_space = layout.memory_space
    for split in layout.split_configs:
        proto.split_configs.add(dimension=split.dimension, split_indices=split.indices)
    if layout.physical_shape is not None:
        write_shape(proto.physical_shape, layout.physical_shape)
    proto.dynamic_shape_metadata_prefix_bytes = layout.metadata_prefix_bytes
    proto.SetInParent()


def write_program_shape(proto: Message, layout: EntryLayout, names: tuple[str, ...] = ()) -> None:
    """Fill a ProgramShapeProto."""
    for parameter in layout.parameters:
        write_shape(proto.parameters.add(), parameter)
    write_shape(proto.result, layout.result)
    proto.parameter_names.extend(names)
