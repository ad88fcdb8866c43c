"""ShapeProto and LayoutProto as shapes of the IR, printed as XLA prints them."""

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
    Shape,
    SplitConfig,
    TupleShape,
)
from hlotool.parse.proto.schema import Message, enum_names

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
