"""Data movement: where in its operands an instruction reads.

XLA: operation_semantics.md, the section of each opcode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from hlotool.backends.cuda.codegen.elements import array_shape, computed, converted, element_type, literal
from hlotool.backends.cuda.codegen.emit import Emitter, writes
from hlotool.backends.cuda.codegen.indices import Expr, Index, constant, digit, linear, split
from hlotool.ir.arrays import dtype_of
from hlotool.ir.attributes import PaddingDim, SliceDim, WindowDim
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import by_opcode
from hlotool.ir.types import ElementType


@writes("broadcast")
def broadcast(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """Operand dimension i is dimension `dimensions[i]` of the result."""
    dimensions = instruction.integers("dimensions", ())
    return (emitter.value(instruction.operands[0], [index[d] for d in dimensions]),)


@writes("transpose")
def transpose(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """Dimension i of the result is dimension `dimensions[i]` of the operand."""
    source = dict(zip(instruction.integers("dimensions"), index))
    return (emitter.value(instruction.operands[0], [source[d] for d in range(len(index))]),)


@writes("reshape")
def reshape(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The same elements in the same order."""
    operand = instruction.operands[0]
    position = linear(index, array_shape(instruction).dims)
    return (emitter.value(operand, split(position, array_shape(operand).dims)),)


@writes("reverse")
def reverse(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """Some dimensions from their end."""
    turned, dims = instruction.integers("dimensions"), array_shape(instruction).dims
    parts = [part * -1 + (dims[d] - 1) if d in turned else part for d, part in enumerate(index)]
    return (emitter.value(instruction.operands[0], parts),)


@writes("slice")
def static_slice(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """Every `stride`-th element from `start` on."""
    slices = instruction.listed("slice", SliceDim)
    return (emitter.value(instruction.operands[0], [p * d.stride + d.start for p, d in zip(index, slices)]),)


@writes("iota")
def iota(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The index along one dimension."""
    kind = element_type(instruction)
    place = f"(s64){emitter.index(index[instruction.integer('iota_dimension')])}"
    return (emitter.define(computed(kind), converted(place, ElementType.S64, kind)),)


@writes("concatenate")
def concatenate(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The operands one behind the other."""
    (dimension,) = instruction.integers("dimensions")
    part, offset, ends = index[dimension], 0, []
    for operand in instruction.operands:
        start, offset = offset, offset + array_shape(operand).dims[dimension]
        emitter.begins(part, offset)
        if part.low < offset and part.high >= start:
            ends.append((operand, start, offset))

    def value(operand: Instruction, start: int) -> str:
        return emitter.value(operand, [p - start if d == dimension else p for d, p in enumerate(index)])

    if len(ends) == 1:
        return (value(*ends[0][:2]),)
    result = emitter.variable(element_type(instruction))
    for position, (operand, start, end) in enumerate(ends):
        condition = "" if position == len(ends) - 1 else f"if ({emitter.index(part)} < {end})"
        with emitter.block(f"{'else ' if position else ''}{condition}"):
            emitter.add(f"{result} = {value(operand, start)};")
    return (result,)


@writes("pad")
def pad(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """Operand elements where there are some, else the padding value. Nothing outside is ever read."""
    operand, filler = instruction.operands
    paddings, sizes = instruction.listed("padding", PaddingDim), array_shape(operand).dims
    tests, parts, is_outside = [], [], False
    for part, padding, size in zip(index, paddings, sizes):
        place, step = part - padding.low, padding.interior + 1
        if place.high < 0 or place.low >= _extent(size, step):
            is_outside = True
            continue
        tests += _on_element(emitter, place, size, step)
        parts.append(digit(place, step, None))
    if is_outside:
        return (emitter.value(filler, ()),)
    if not tests:
        return (emitter.value(operand, parts),)
    result = emitter.variable(element_type(instruction), emitter.value(filler, ()))
    with emitter.where(tests):
        emitter.add(f"{result} = {emitter.value(operand, parts)};")
    return (result,)


def _extent(size: int, step: int) -> int:
    """Places from the first element to the last where neighbours are `step` places apart."""
    return (size - 1) * step + 1 if size else 0


def _on_element(emitter: Emitter, place: Expr, size: int, step: int) -> list[str]:
    """What must be tested for a place to be that of an element, where neighbours are `step` places apart."""
    tests = within(emitter, place, _extent(size, step))
    return [*tests, f"{emitter.index(place)} % {step} == 0"] if step > 1 else tests


def in_window(
    emitter: Emitter,
    window: Sequence[WindowDim],
    index: Sequence[Expr],
    positions: Sequence[Expr],
    sizes: Sequence[int],
) -> tuple[list[str], list[Expr]]:
    """What lies under a position of a window.

    Args:
        emitter: where to write.
        window: its dimensions.
        index: of the window.
        positions: inside of it.
        sizes: of the array that windows move over.

    Returns:
        What must be tested for an element to lie there, not padding or a hole, and its index.
    """
    tests, place = [], []
    for dim, part, position, size in zip(window, index, positions, sizes):
        at = part * dim.stride + position * dim.window_dilation - dim.pad_low
        tests += _on_element(emitter, at, size, dim.base_dilation)
        place.append(digit(at, dim.base_dilation, None))
    return tests, place


def within(emitter: Emitter, part: Expr, size: int) -> list[str]:
    """What must be tested for an index to be from 0 to size - 1."""
    emitter.begins(part, 0)
    emitter.begins(part, size)
    if part.low >= 0 and part.high < size:
        return []
    name = emitter.index(part)
    tests = [f"{name} >= 0"] if part.low < 0 else []
    return tests + ([f"{name} < {size}"] if part.high >= size else [])


def all_within(emitter: Emitter, index: Iterable[Expr], sizes: Iterable[int]) -> list[str]:
    """What must be tested for an index to be that of an element of an array with these sizes."""
    return [test for part, size in zip(index, sizes) for test in within(emitter, part, size)]


def as_i64(value: str, kind: ElementType) -> str:
    """An index that was read from data, as a signed number of 64 bits."""
    return f"index_of({value})" if kind is ElementType.U64 else f"(i64){value}"


def _start(emitter: Emitter, value: str, kind: ElementType, limit: int) -> Expr:
    """A start index that was read from data, moved to [0, limit]."""
    return emitter.computed_index(f"(Index)clamped({as_i64(value, kind)}, {limit})", limit + 1)


def starts(
    emitter: Emitter, indices: Sequence[Instruction], dims: Sequence[int], sizes: Sequence[int]
) -> list[Expr]:
    """Where the window of a dynamic slice begins: scalars, or one vector in the older form."""
    is_vector = len(indices) == 1 and array_shape(indices[0]).rank == 1
    found = []
    for d, (size, window) in enumerate(zip(dims, sizes)):
        source = indices[0] if is_vector else indices[d]
        value = emitter.value(source, (constant(d),) if is_vector else ())
        found.append(_start(emitter, value, element_type(source), size - window))
    return found


@writes("dynamic-slice")
def dynamic_slice(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """A window at a position that is data."""
    operand, *indices = instruction.operands
    begin = starts(emitter, indices, array_shape(operand).dims, array_shape(instruction).dims)
    return (emitter.value(operand, [b + p for b, p in zip(begin, index)]),)


@writes("dynamic-update-slice")
def dynamic_update_slice(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """The update inside the window, the first operand outside."""
    operand, update, *indices = instruction.operands
    sizes = array_shape(update).dims
    begin = starts(emitter, indices, array_shape(operand).dims, sizes)
    places = [part - b for part, b in zip(index, begin)]
    tests = all_within(emitter, places, sizes)
    result = emitter.variable(element_type(instruction))
    with emitter.where(tests):
        emitter.add(f"{result} = {emitter.value(update, places)};")
    with emitter.block("else"):
        emitter.add(f"{result} = {emitter.value(operand, index)};")
    return (result,)


@writes("gather")
def gather(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """Windows of the first operand whose starts stand in the second one, each clamped.

    XLA: operation_semantics.md#gather.
    """
    operand, indices = instruction.operands
    dims, sizes = array_shape(operand).dims, instruction.integers("slice_sizes")
    offset_dims, vector_dim = instruction.integers("offset_dims", ()), instruction.integer("index_vector_dim")
    batching_dims = (f"{of}_batching_dims" for of in ("operand", "start_indices"))
    batching = dict(zip(*(instruction.integers(name, ()) for name in batching_dims)))
    dropped = {*instruction.integers("collapsed_slice_dims", ()), *batching}
    if any(sizes[d] == 0 for d in dropped):
        # The result has elements all the same, of windows that have none: XLA gives zeros.
        kind = element_type(instruction)
        return (emitter.variable(kind, literal(np.zeros((), dtype_of(kind)), kind)),)
    batch = [part for d, part in enumerate(index) if d not in offset_dims]
    offsets = iter([index[d] for d in sorted(offset_dims)])
    parts = [constant(0) if d in dropped else next(offsets) for d in range(len(dims))]

    for component, d in enumerate(instruction.integers("start_index_map", ())):
        value = index_component(emitter, indices, batch, vector_dim, component)
        parts[d] = _start(emitter, value, element_type(indices), dims[d] - sizes[d]) + parts[d]
    for d, index_dim in batching.items():
        parts[d] = batch[index_dim - (index_dim > vector_dim)]
    return (emitter.value(operand, parts),)


def index_component(
    emitter: Emitter, indices: Instruction, batch: Sequence[Expr], vector_dim: int, component: int
) -> str:
    """A number of the index vector that gather or scatter reads at `batch`."""
    place = list(batch)
    if vector_dim < array_shape(indices).rank:
        place.insert(vector_dim, constant(component))
    return emitter.value(indices, place)


#: Writes one result of an operation whose results are of unlike shapes.
Taker = Callable[[Emitter, Instruction, int, Index], str]

#: By opcode.
TAKERS: dict[str, Taker] = {}


def takes(*opcodes: str) -> Callable[[Taker], Taker]:
    """Register what writes the results of `opcodes`, one at a time."""
    return by_opcode(TAKERS, opcodes)


@writes("get-tuple-element")
def get_tuple_element(emitter: Emitter, instruction: Instruction, index: Index) -> tuple[str, ...]:
    """One result of an operation that has several."""
    (operand,), part = instruction.operands, instruction.integer("index")
    if (taker := TAKERS.get(operand.opcode)) is not None:
        return (taker(emitter, operand, part, index),)
    return (emitter.values(operand, index)[part],)
