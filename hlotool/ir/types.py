"""Element types, layouts and shapes: immutable, hashable, printed as XLA prints them.

XLA: docs/shapes.md, docs/tiled_layout.md; xla_data.proto (PrimitiveType, LayoutProto, ShapeProto).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

#: Size of a dimension printed as `?`: unbounded dynamic.
UNBOUNDED = -1


class TypeClass(enum.Enum):
    """The arithmetic family of an element type."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOATING = "floating"
    COMPLEX = "complex"


def _describe(text: str) -> tuple[TypeClass, int]:
    """Family and bits of a value, read off the type's name."""
    if text == "pred":
        return TypeClass.PRED, 8
    if text.startswith("bf"):
        return TypeClass.FLOATING, 16
    families = {
        "s": TypeClass.SIGNED,
        "u": TypeClass.UNSIGNED,
        "f": TypeClass.FLOATING,
        "c": TypeClass.COMPLEX,
    }
    digits = text[1:].split("e")[0]
    return families[text[0]], int(digits)


class ElementType(enum.Enum):
    """XLA's primitive types that arrays can hold; the value is the name in HLO text."""

    PRED = "pred"
    S1 = "s1"
    S2 = "s2"
    S4 = "s4"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    U1 = "u1"
    U2 = "u2"
    U4 = "u4"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F4E2M1FN = "f4e2m1fn"
    F6E2M3FN = "f6e2m3fn"
    F6E3M2FN = "f6e3m2fn"
    F8E3M4 = "f8e3m4"
    F8E4M3 = "f8e4m3"
    F8E4M3FN = "f8e4m3fn"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E4M3B11FNUZ = "f8e4m3b11fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0FNU = "f8e8m0fnu"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"

    def __init__(self, text: str) -> None:
        self.family, self.value_bits = _describe(text)
        #: Width in arrays: a float of six bits has a byte, and is not packed. XLA: primitive_util::BitWidth.
        self.bits = 8 if self.value_bits == 6 else self.value_bits

    def __str__(self) -> str:
        return str(self.value)

    def __hash__(self) -> int:
        return id(self)

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned; pred is neither."""
        return self.family in (TypeClass.SIGNED, TypeClass.UNSIGNED)

    @property
    def is_signed(self) -> bool:
        """Two's complement integer."""
        return self.family is TypeClass.SIGNED

    @property
    def is_unsigned(self) -> bool:
        """Unsigned integer."""
        return self.family is TypeClass.UNSIGNED

    @property
    def is_floating(self) -> bool:
        """Real floating point of any width."""
        return self.family is TypeClass.FLOATING

    @property
    def is_complex(self) -> bool:
        """c64 or c128."""
        return self.family is TypeClass.COMPLEX

    @property
    def is_inexact(self) -> bool:
        """Floating point, real or complex: the types whose arithmetic rounds."""
        return self.is_floating or self.is_complex

    @property
    def is_narrow_float(self) -> bool:
        """A float narrower than f32, whose arithmetic XLA does in f32 and rounds back."""
        return self.is_floating and self.bits < 32

    @property
    def is_always_finite(self) -> bool:
        """A float with neither NaN nor infinity: f4 and f6. What is too large becomes the largest number."""
        return self.is_floating and self.value_bits < 8

    @property
    def real_part(self) -> ElementType:
        """The type of a complex number's parts; the type itself otherwise."""
        return {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}.get(self, self)


#: Look-up by the name in HLO text.
ELEMENT_TYPES: dict[str, ElementType] = {t.value: t for t in ElementType}

Tile: TypeAlias = tuple[int, ...]
#: In a tile: this dimension is combined with the next more minor one (printed `*`).
COMBINE = -(2**63)


class SplitConfig(Struct, frozen=True):
    """`SC(dimension:i,j)`: a dimension whose halves live in different memories."""

    dimension: int
    indices: tuple[int, ...]


class Layout(Struct, frozen=True):
    """How an array lies in memory.

    Attributes:
        minor_to_major: dimension numbers, fastest varying first.
        tiles: `T(8,128)(2,1)`; COMBINE marks a `*`.
        tail_padding_alignment: `L(n)`, in elements.
        index_type: `#(u32)`; pointer_type: `*(u32)`: names of primitive types.
        element_bits: `E(n)`; 0 means the element type's own width.
        memory_space: `S(n)`; 0 is device memory, 5 host memory.
        split_configs: `SC(...)`.
        physical_shape: `P(shape)`.
        metadata_prefix_bytes: `M(n)`.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[Tile, ...] = ()
    tail_padding_alignment: int = 1
    index_type: str | None = None
    pointer_type: str | None = None
    element_bits: int = 0
    memory_space: int = 0
    split_configs: tuple[SplitConfig, ...] = ()
    physical_shape: Shape | None = None
    metadata_prefix_bytes: int = 0

    @property
    def is_plain(self) -> bool:
        """Nothing but an order of dimensions."""
        return self == Layout(self.minor_to_major)

    @property
    def is_descending(self) -> bool:
        """Row-major: the last dimension varies fastest."""
        return self.minor_to_major == tuple(range(len(self.minor_to_major) - 1, -1, -1))

    def __str__(self) -> str:
        text = ",".join(map(str, self.minor_to_major))
        extras = self._extras()
        return f"{{{text}:{extras}}}" if extras else f"{{{text}}}"

    def _extras(self) -> str:
        parts: list[str] = []
        if self.tiles:
            parts.append("T" + "".join(f"({_tile_text(tile)})" for tile in self.tiles))
        if self.tail_padding_alignment != 1:
            parts.append(f"L({self.tail_padding_alignment})")
        if self.index_type:
            parts.append(f"#({self.index_type})")
        if self.pointer_type:
            parts.append(f"*({self.pointer_type})")
        if self.element_bits:
            parts.append(f"E({self.element_bits})")
        if self.memory_space:
            parts.append(f"S({self.memory_space})")
        if self.split_configs:
            configs = (f"({c.dimension}:{','.join(map(str, c.indices))})" for c in self.split_configs)
            parts.append("SC" + "".join(configs))
        if self.physical_shape is not None:
            parts.append(f"P({self.physical_shape})")
        if self.metadata_prefix_bytes:
            parts.append(f"M({self.metadata_prefix_bytes})")
        return "".join(parts)


def _tile_text(tile: Tile) -> str:
    return ",".join("*" if size == COMBINE else str(size) for size in tile)


class ArrayShape(Struct, frozen=True):
    """An array: element type, dimensions, optional layout.

    Attributes:
        element_type: what it holds.
        dims: sizes; for a dynamic dimension its bound, or UNBOUNDED.
        dynamic: one flag per dimension, or empty when all are static.
        layout: None where the text gives none.
    """

    element_type: ElementType
    dims: tuple[int, ...]
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def size(self) -> int:
        """Number of elements (at the bound of dynamic dimensions)."""
        return prod(self.dims)

    @property
    def is_dynamic(self) -> bool:
        """Whether some dimension's size is known only at run time."""
        return any(self.dynamic)

    def is_dynamic_dimension(self, dimension: int) -> bool:
        """Whether `dimension` is bounded or unbounded dynamic."""
        return bool(self.dynamic) and self.dynamic[dimension]

    def admits(self, sizes: Sequence[int]) -> bool:
        """Whether an array of these sizes has this shape: up to the bound, where a dimension is dynamic."""
        return tuple(sizes) == self.dims or (
            len(sizes) == self.rank
            and all(
                bound == UNBOUNDED or (size <= bound if self.is_dynamic_dimension(d) else size == bound)
                for d, (size, bound) in enumerate(zip(sizes, self.dims))
            )
        )

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """The dimensions, fastest varying first; row-major where no layout is stated."""
        return self.layout_or_default.minor_to_major

    @property
    def byte_size(self) -> int:
        """Bytes of the elements, of which each takes one or more. XLA: ShapeUtil::ByteSizeOf."""
        return self.size * max(1, self.element_type.bits // 8)

    @property
    def layout_or_default(self) -> Layout:
        """The layout that is written, else the row-major one."""
        return self.layout or Layout(tuple(range(self.rank - 1, -1, -1)))

    def without_layout(self) -> ArrayShape:
        """The shape of the same array with no layout stated."""
        return replace(self, layout=None)

    def __str__(self) -> str:
        layout = str(self.layout) if self.layout is not None else ""
        return self.logical_text() if layout == "{}" else self.logical_text() + layout

    def logical_text(self) -> str:
        """`f32[2,<=3]`, no layout."""
        sizes = self._dim_texts() if self.dynamic else map(str, self.dims)
        return f"{self.element_type.value}[{','.join(sizes)}]"

    def _dim_texts(self) -> Iterator[str]:
        for i, size in enumerate(self.dims):
            if size == UNBOUNDED:
                yield "?"
            elif self.is_dynamic_dimension(i):
                yield f"<={size}"
            else:
                yield str(size)


def join_indexed(texts: Iterable[str]) -> str:
    """Join with commas; every fifth gets a `/*index=5*/` before it, as XLA prints long lists."""
    marked = (f"/*index={i}*/{text}" if i and i % 5 == 0 else text for i, text in enumerate(texts))
    return ", ".join(marked)


class TupleShape(Struct, frozen=True):
    """A tuple of shapes."""

    elements: tuple[Shape, ...]

    def __str__(self) -> str:
        return f"({join_indexed(map(str, self.elements))})"


class TokenShape(Struct, frozen=True):
    """`token[]`: orders side effects, holds nothing."""

    def __str__(self) -> str:
        return "token[]"


class OpaqueShape(Struct, frozen=True):
    """`opaque[]`: a value that only a custom call understands."""

    def __str__(self) -> str:
        return "opaque[]"


class BufferShape(Struct, frozen=True):
    """`b(f32[4])`: a mutable buffer holding an array."""

    array: ArrayShape

    def __str__(self) -> str:
        return f"b({self.array})"


Shape: TypeAlias = ArrayShape | TupleShape | TokenShape | OpaqueShape | BufferShape

#: Path from a shape to one of its parts: tuple indices, outermost first. `()` is the whole.
ShapeIndex: TypeAlias = tuple[int, ...]

TOKEN = TokenShape()
OPAQUE = OpaqueShape()


def leaves(shape: Shape, prefix: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, Shape]]:
    """All non-tuple parts of `shape` with their indices, depth first."""
    if isinstance(shape, TupleShape):
        for i, element in enumerate(shape.elements):
            yield from leaves(element, (*prefix, i))
    else:
        yield prefix, shape


def array_shapes(shape: Shape) -> list[ArrayShape]:
    """The arrays among the leaves of `shape`, depth first."""
    if isinstance(shape, ArrayShape):
        return [shape]
    return [leaf for _, leaf in leaves(shape) if isinstance(leaf, ArrayShape)]


def subshape(shape: Shape, index: ShapeIndex) -> Shape:
    """The part of `shape` at `index`; raises IndexError or TypeError when there is none."""
    for i in index:
        if not isinstance(shape, TupleShape):
            raise TypeError(f"{shape} is not a tuple")
        shape = shape.elements[i]
    return shape


def strip_layouts(shape: Shape) -> Shape:
    """The same shape without any layout: what two programs must share to be comparable."""
    if isinstance(shape, ArrayShape):
        return shape if shape.layout is None else shape.without_layout()
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(strip_layouts(e) for e in shape.elements))
    if isinstance(shape, BufferShape):
        return BufferShape(shape.array.without_layout())
    return shape
