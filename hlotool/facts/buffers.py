"""How many bytes values take in memory, and which results are the memory of their operands.

Layouts in tiles are written by the compiler for TPUs only.

XLA: shape_util.cc, CpuExecutable::ShapeSizeBytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeVar

from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import (
    COMBINE,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    Layout,
    OpaqueShape,
    Shape,
    ShapeIndex,
    TupleShape,
    array_shapes,
    leaves,
)

#: Bytes of a pointer in a tuple's table: as executables take them. What jaxlib 0.12 counts as costs has four.
POINTER = 8
#: Of a dynamic dimension's size, kept behind the elements for each dimension.
_DIMENSION = 4


def array_bytes(shape: ArrayShape) -> int:
    """Bytes of one array, in whole tiles and packed where its layout says so; at the bound of its dimensions.

    XLA counts tiles since jaxlib 0.12, and not those that combine dimensions (`T(*,8)`). What has no bound
    counts as nothing.
    """
    if shape.is_dynamic and UNBOUNDED in shape.dims:
        return 0
    layout = shape.layout
    if layout is None or not (layout.tiles or layout.element_bits):
        return shape.byte_size
    count = _tiled_size(shape.dims, layout) if layout.tiles else shape.size
    bits = layout.element_bits or 8 * max(1, shape.element_type.bits // 8)
    return -(-count * bits // 8)


def _tiled_size(dims: Sequence[int], layout: Layout) -> int:
    """Elements of whole tiles; the tiles after the first one divide it."""
    first = layout.tiles[0]
    if COMBINE in first or 0 in dims:
        return prod(dims)
    physical = [dims[d] for d in reversed(layout.minor_to_major)]
    physical = [1] * (len(first) - len(physical)) + physical
    outer = len(physical) - len(first)
    whole = (-(-size // tile) * tile for size, tile in zip(physical[outer:], first, strict=True))
    return prod(physical[:outer]) * prod(whole)


def table_bytes(shape: Shape) -> int:
    """Bytes of the value itself; of a tuple that is its table of pointers, not what they point to."""
    if isinstance(shape, ArrayShape):
        return array_bytes(shape) + (_DIMENSION * shape.rank if shape.is_dynamic else 0)
    if isinstance(shape, TupleShape):
        return POINTER * len(shape.elements)
    if isinstance(shape, BufferShape):
        return array_bytes(shape.array)
    return POINTER if isinstance(shape, OpaqueShape) else 0


def total_bytes(shape: Shape) -> int:
    """Bytes of the value and, where it is a tuple, of everything in it."""
    return sum(table_bytes(leaf) for _, leaf in leaves(shape))


class Sizes:
    """Bytes of the shapes of one program, each worked out once.

    Instructions share the objects that say their shapes, so these are told apart by identity: to compare two
    shapes takes as long as to count their bytes.
    """

    def __init__(self) -> None:
        self._kept: list[Shape] = []
        self._tables: dict[int, int] = {}
        self._totals: dict[int, int] = {}
        self._leaves: dict[int, tuple[tuple[ShapeIndex, int, int], ...]] = {}

    def table(self, shape: Shape) -> int:
        """What `table_bytes` says of `shape`."""
        known = self._tables.get(id(shape))
        if known is None:
            known = self._tables[self._place(shape)] = table_bytes(shape)
        return known

    def total(self, shape: Shape) -> int:
        """What `total_bytes` says of `shape`."""
        known = self._totals.get(id(shape))
        if known is None:
            known = self._totals[self._place(shape)] = total_bytes(shape)
        return known

    def of_leaves(self, shape: Shape) -> tuple[tuple[ShapeIndex, int, int], ...]:
        """Index, bytes and memory space of each leaf of `shape`; what is no array takes nothing."""
        known = self._leaves.get(id(shape))
        if known is None:
            found = (
                (i, array_bytes(leaf), leaf.layout.memory_space if leaf.layout else 0)
                if isinstance(leaf, ArrayShape)
                else (i, 0, 0)
                for i, leaf in leaves(shape)
            )
            known = self._leaves[self._place(shape)] = tuple(found)
        return known

    def _place(self, shape: Shape) -> int:
        """The identity of a shape that no other shape gets while this object is in use."""
        self._kept.append(shape)
        return id(shape)


# Layouts in tiles: only the compiler for TPUs writes them.


def has_tiles(shape: Shape) -> bool:
    """Whether a layout in a shape has tiles."""
    return any(part.layout is not None and bool(part.layout.tiles) for part in array_shapes(shape))


def is_tiled(module: Module) -> bool:
    """Whether a program has layouts in tiles: then a compiler for TPUs wrote it."""
    return any(has_tiles(instruction.shape) for instruction in module.instructions())


_Value = TypeVar("_Value")

#: Hand on their first operand as it is.
_SAME = frozenset(
    {
        "add-dependency", "all-reduce-done", "async-update", "bitcast", "domain", "opt-barrier", "recv-done",
        "reshape", "while",
    }
)  # fmt: skip
#: Hand on a part of what was started: its index there.
_FINISHED: Mapping[str, ShapeIndex] = {
    **dict.fromkeys(opcodes_with(Trait.FINISHES) - {"all-reduce-done"}, (1,)),
    "copy-done": (0,),
}
#: Where what was started keeps its operands.
_STARTED: Mapping[str, ShapeIndex] = {
    **dict.fromkeys(opcodes_with(Trait.STARTS) - {"all-reduce-start"} | {"send"}, (0,)),
    "copy-start": (1,),
}
#: What hands on anything at all.
_HANDING_ON = _SAME | _FINISHED.keys() | _STARTED.keys() | opcodes_with(Class.TUPLE) | {"call"}


def handed_on(
    instruction: Instruction, values: Mapping[Instruction, Sequence[_Value]]
) -> dict[ShapeIndex, _Value]:
    """Which leaves of the result are values of operands.

    Args:
        instruction: in question.
        values: of the leaves of each operand, in order.
    """
    return dict(_handed_on(instruction, values)) if instruction.opcode in _HANDING_ON else {}


def _handed_on(
    instruction: Instruction, values: Mapping[Instruction, Sequence[_Value]]
) -> Iterator[tuple[ShapeIndex, _Value]]:
    opcode, operands = instruction.opcode, instruction.operands
    if opcode in _SAME:
        yield from _leaves(operands[0], values)
    elif opcode == "call":
        yield from _through(instruction, values)
    elif opcode == "tuple":
        for number, operand in enumerate(operands):
            yield from _within(operand, values, (number,))
    elif opcode == "get-tuple-element" or opcode in _FINISHED:
        start = (instruction.integer("index"),) if opcode == "get-tuple-element" else _FINISHED[opcode]
        for index, value in _leaves(operands[0], values):
            if index[:1] == start:
                yield index[1:], value
    elif opcode in _STARTED:
        data = operands[:1] if opcode == "send" else operands
        is_listed = len(data) > 1 or opcode == "async-start"
        for number, operand in enumerate(data):
            yield from _within(
                operand, values, (*_STARTED[opcode], number) if is_listed else _STARTED[opcode]
            )


def _through(
    call: Instruction, values: Mapping[Instruction, Sequence[_Value]]
) -> Iterator[tuple[ShapeIndex, _Value]]:
    """What a computation hands on of its arguments: XLA's CPU compiler puts a loop into one of its own."""
    callee = call.computation("to_apply")
    inner: dict[Instruction, Sequence[_Value | None]] = {
        parameter: values[operand] for parameter, operand in zip(callee.parameters, call.operands)
    }
    for instruction in callee.instructions:
        if instruction not in inner:
            handed = handed_on(instruction, inner)
            inner[instruction] = [handed.get(index) for index, _ in leaves(instruction.shape)]
    for index, value in _leaves(callee.root, inner):
        if value is not None:
            yield index, value


def _leaves(
    instruction: Instruction, values: Mapping[Instruction, Sequence[_Value]]
) -> Iterator[tuple[ShapeIndex, _Value]]:
    for (index, _), value in zip(leaves(instruction.shape), values[instruction]):
        yield index, value


def _within(
    operand: Instruction, values: Mapping[Instruction, Sequence[_Value]], place: ShapeIndex
) -> Iterator[tuple[ShapeIndex, _Value]]:
    for index, value in _leaves(operand, values):
        yield (*place, *index), value
