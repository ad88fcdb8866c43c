"""Arrays whose size is known only at run time.

Such an array is held at its actual size. What lies between the actual size and the bound has no meaning in
HLO, yet XLA keeps it, and a program that enlarges an array again sees it. That is computed anew where
operations lead to it that look at nothing else along the dimension; other programs that enlarge an array are
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.custom_calls import custom_call
from hlotool.backends.numpy.elementwise import dimension_groups, reshaped_dims
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel, Reading, lowers
from hlotool.ir.arrays import Array
from hlotool.ir.attributes import SliceDim
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, TupleShape
from hlotool.ir.walk import post_order


@lowers("get-dimension-size")
def get_dimension_size(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The actual size of a dimension, s32. XLA: operation_semantics.md#getdimensionsize."""
    (dimension,) = instruction.integers("dimensions")
    return lambda x: np.int32(x.shape[dimension])


@lowers("set-dimension-size")
def set_dimension_size(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The array cut to a size. XLA: operation_semantics.md#setdimensionsize, dynamic_padder.cc."""
    (dimension,) = instruction.integers("dimensions")
    before = (slice(None),) * dimension

    def cut(x: Array, size: Array) -> Any:
        wanted, known = int(size), x.shape[dimension]
        if not 0 <= wanted <= known:
            raise lowering.unsupported(instruction, f"size {wanted} where {known} elements are known")
        return x[(*before, slice(wanted))]

    array, size = instruction.operands
    if not array.array_shape.is_dynamic_dimension(dimension):
        return cut
    whole = _Whole(array, dimension, lowering)

    def cut_or_enlarged(x: Array, size: Array, *sources: Array) -> Any:
        return cut(x if size <= x.shape[dimension] else whole.evaluate(sources), size)

    return Reading(cut_or_enlarged, (array, size, *whole.sources))


#: One dimension of an array.
_Along = tuple[Instruction, int]


class _Whole:
    """An array as if one dimension of it had not been cut.

    Args:
        array: the operations between it and where it was cut are executed again, as far as each of their
            results along the dimension comes from the same place of their operands.
        dimension: that was cut.
        lowering: of the module.

    Attributes:
        sources: the instructions whose values are needed.
    """

    def __init__(self, array: Instruction, dimension: int, lowering: Lowering) -> None:
        self._array = array
        steps: dict[Instruction, tuple[Instruction, ...]] = {}
        waiting = [(array, dimension)]
        reached = set(waiting)
        while waiting:
            instruction, along = waiting.pop()
            through = _through(instruction, along)
            steps[instruction] = instruction.operands if through else ()
            waiting += [place for place in through if place not in reached]
            reached.update(through)
        order = [i for i in post_order([array]) if steps.get(i)]
        read = dict.fromkeys(operand for i in order for operand in i.operands if operand not in order)
        self.sources = tuple(read) or (array,)
        self._steps = [(i, _again(i, lowering)) for i in order]

    def evaluate(self, sources: Sequence[Array]) -> Any:
        """The array, from the values of `sources`."""
        values = dict(zip(self.sources, sources))
        for instruction, function in self._steps:
            values[instruction] = function(*(values[operand] for operand in instruction.operands))
        return values[self._array]


def _through(instruction: Instruction, dimension: int) -> list[_Along]:
    """The operands that determine what was cut off, and along which of their dimensions.

    None where that is not known, such as behind what looks beyond its own place in the dimension.
    """
    operands = instruction.operands
    opcode = instruction.opcode
    if opcode == "set-dimension-size":
        return [(operands[0], dimension)]
    if opcode == "transpose":
        return [(operands[0], instruction.integers("dimensions")[dimension])]
    if opcode == "broadcast":
        kept = instruction.integers("dimensions")
        return [(operands[0], kept.index(dimension))] if dimension in kept else []
    if opcode == "reduce" and len(operands) == 2:
        gone = instruction.integers("dimensions")
        return [(operands[0], [d for d in range(operands[0].array_shape.rank) if d not in gone][dimension])]
    if opcode == "slice":
        whole = SliceDim(0, operands[0].dims[dimension])
        return [(operands[0], dimension)] if instruction.listed("slice", SliceDim)[dimension] == whole else []
    if opcode == "reshape":
        groups = dimension_groups(operands[0].dims, instruction.dims)
        return [(operands[0], one) for (one, *more), targets in groups if targets == [dimension] and not more]
    if opcode in ("reverse", "concatenate"):
        return [] if dimension in instruction.integers("dimensions") else [(o, dimension) for o in operands]
    is_elementwise = instruction.row.opcode_class is Class.ELEMENTWISE and opcode != "map"
    return [(o, dimension) for o in operands if o.array_shape.rank] if is_elementwise else []


def _again(instruction: Instruction, lowering: Lowering) -> Callable[..., Any]:
    """The function of an operation; nothing happens where an array was cut."""
    if instruction.opcode == "set-dimension-size":
        return lambda x, size: x
    kernel = lowering.kernel(instruction)
    if isinstance(kernel, (Calling, Reading)):
        raise lowering.unsupported(instruction, "an operation that calls computations, on what was cut off")
    return kernel


@lowers("reshape")
def reshape(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The elements in row-major order, in other dimensions. XLA: operation_semantics.md#reshape."""
    source, target = instruction.operands[0].array_shape, instruction.array_shape
    if not (source.is_dynamic or target.is_dynamic):
        dims = target.dims
        return lambda x: x.reshape(dims)

    def kernel(x: Array) -> Any:
        dims = reshaped_dims(x.shape, source, target)
        if dims is None:
            actual = ",".join(map(str, x.shape))
            raise lowering.unsupported(instruction, f"[{actual}] does not fill {target.logical_text()}")
        return x.reshape(dims)

    return kernel


@lowers("dynamic-reshape")
def dynamic_reshape(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The elements in the dimensions that the scalar operands give. XLA: #dynamicreshape."""

    def kernel(x: Array, *sizes: Array) -> Any:
        dims = tuple(int(size) for size in sizes)
        if prod(dims) != x.size:
            raise lowering.unsupported(instruction, f"{x.size} elements do not fill {list(dims)}")
        return x.reshape(dims)

    return kernel


@custom_call("SliceToDynamic")
def slice_to_dynamic(instruction: Instruction, lowering: Lowering) -> Kernel:
    """A padded array, cut to the sizes in the other operands. XLA: dynamic_padder.cc."""
    return _cut


def _cut(x: Array, *sizes: Array) -> Any:
    return x[tuple(slice(int(size)) for size in sizes)]


@custom_call("PadToStatic")
def pad_to_static(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The array, padded with zeros to its bounds, and its actual sizes. XLA: dynamic_padder.cc."""
    shape = instruction.shape
    padded = shape.elements[0] if isinstance(shape, TupleShape) and shape.elements else None
    if not isinstance(padded, ArrayShape):
        raise lowering.unsupported(instruction, f"PadToStatic to {shape}")
    return partial(_padded, dims=padded.dims)


def _padded(x: Array, dims: tuple[int, ...]) -> tuple[Any, ...]:
    result = np.zeros(dims, x.dtype)
    result[tuple(slice(size) for size in x.shape)] = x
    return (result, *(np.int32(size) for size in x.shape))
