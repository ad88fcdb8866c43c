"""From a function on whole arrays to the kernel of an elementwise instruction; actual sizes of dynamic
dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.integers import carrier, is_sub_byte, wrap
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.precision import every_value, narrower, to_f32, widen
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import UNBOUNDED, ArrayShape, ElementType, TypeClass


def on_common_prefix(function: Callable[..., Any], shapes: Sequence[ArrayShape]) -> Kernel:
    """An elementwise kernel for operands of `shapes` whose actual sizes differ.

    XLA looks only at the part that all of them have. Of two operands, a dimension that is dynamic in both and
    actually 1 in one of them is repeated there, as NumPy does. Scalars go with any size.
    XLA: dynamic_padder.cc (RewriteDynamicBinaryOp).
    """
    repeats = [
        len(shapes) == 2 and all(shape.is_dynamic_dimension(dimension) for shape in shapes)
        for dimension in range(max(shape.rank for shape in shapes))
    ]

    def common(sizes: Sequence[int], repeat: bool) -> slice:
        smallest = min(sizes)
        return slice(max(sizes) if repeat and smallest == 1 else smallest)

    def kernel(*operands: Any) -> Any:
        arrays = [o for o in operands if o.ndim]
        if len({a.shape for a in arrays}) <= 1:
            return function(*operands)
        part = tuple(map(common, zip(*(a.shape for a in arrays)), repeats))
        return function(*[o[part] if o.ndim else o for o in operands])

    return kernel


def reshaped_dims(actual: Sequence[int], source: ArrayShape, target: ArrayShape) -> tuple[int, ...] | None:
    """Actual dimensions of a reshape, or None when the elements do not fill them.

    A dimension without bound takes what is left. Otherwise dimensions are matched in groups with the same
    number of elements at the bound; in each group, at most one dimension of the result may be dynamic.
    """
    if UNBOUNDED in source.dims or UNBOUNDED in target.dims:
        sizes = _fill(prod(actual), [None if n == UNBOUNDED else n for n in target.dims])
        return None if sizes is None else tuple(sizes)
    result: list[int] = []
    for sources, targets in dimension_groups(source.dims, target.dims):
        count = prod(actual[i] for i in sources)
        sizes = _fill(count, [None if target.is_dynamic_dimension(i) else target.dims[i] for i in targets])
        if sizes is None:
            return None
        result.extend(sizes)
    return tuple(result)


def _fill(count: int, sizes: Sequence[int | None]) -> list[int] | None:
    """`sizes` with the unknown one chosen so that their product is `count`."""
    unknown = sizes.count(None)
    known = prod(size for size in sizes if size is not None)
    if unknown > 1 or (unknown == 0 and known != count) or (unknown and known and count % known):
        return None
    missing = count // known if known else 0
    return [missing if size is None else size for size in sizes]


def dimension_groups(source: Sequence[int], target: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Runs of dimensions on both sides with equal products, as short as possible."""
    if 0 in source or 0 in target:
        yield list(range(len(source))), list(range(len(target)))
        return
    i = j = 0
    while i < len(source) or j < len(target):
        sources, targets, a, b = [], [], 1, 1
        if i < len(source):
            sources, a, i = [i], source[i], i + 1
        if j < len(target):
            targets, b, j = [j], target[j], j + 1
        while a != b:
            if a < b:
                sources.append(i)
                a, i = a * source[i], i + 1
            else:
                targets.append(j)
                b, j = b * target[j], j + 1
        yield sources, targets


Function: TypeAlias = Callable[..., Any]


def elementwise(
    instruction: Instruction,
    lowering: Lowering,
    *,
    pred: Function | None = None,
    integer: Function | None = None,
    floating: Function | None = None,
    complexes: Function | None = None,
) -> Kernel:
    """The kernel that applies the function for the operands' family of types.

    Raises:
        Unsupported: no function for that family.
    """
    functions = {
        TypeClass.PRED: pred,
        TypeClass.SIGNED: integer,
        TypeClass.UNSIGNED: integer,
        TypeClass.FLOATING: floating,
        TypeClass.COMPLEX: complexes,
    }
    operand_type = instruction.operands[0].element_type
    function = functions[operand_type.family]
    if function is None:
        raise lowering.unsupported(instruction, f"{instruction.opcode} is not defined on {operand_type}")
    types = [operand.element_type for operand in instruction.operands]
    return for_sizes(adapt(function, types, instruction.element_type), instruction)


def for_sizes(function: Function, instruction: Instruction) -> Kernel:
    """`function` as the kernel of an elementwise instruction, whose operands may be of dynamic size."""
    if not instruction.array_shape.is_dynamic:
        return function
    return on_common_prefix(function, [operand.array_shape for operand in instruction.operands])


def adapt(function: Function, operand_types: list[ElementType], result_type: ElementType) -> Function:
    """`function`, with operands brought to its types and its result to `result_type`.

    Operands of unequal types (mixed precision) meet in the wider one before the result is rounded.
    """
    if any(t is not operand_types[0] for t in operand_types):
        return _mixed(function, operand_types, result_type)
    operand_type = operand_types[0]
    if operand_type.is_narrow_float:
        is_short = len(operand_types) == 1 and result_type is operand_type
        return _looked_up(function, operand_type) if is_short else _narrow_float(function, result_type)
    if is_sub_byte(operand_type):
        return _sub_byte(function, operand_type, result_type)
    return function


def _narrow_float(function: Function, result_type: ElementType) -> Function:
    rounded = narrower(result_type)
    return lambda *operands: rounded(function(*map(to_f32, operands)))


#: From so many elements on a function of one narrow float is looked up: there are 2^16 of them at most.
_MANY = 1 << 17


def _looked_up(function: Function, element_type: ElementType) -> Function:
    computed, dtype = _narrow_float(function, element_type), dtype_of(element_type)
    bits = np.dtype(f"u{dtype.itemsize}")

    def kernel(x: Any) -> Any:
        if x.size < _MANY or x.dtype != dtype or not x.flags.c_contiguous:
            return computed(x)
        return np.take(_results(function, element_type), x.view(bits), mode="wrap")

    return kernel


@lru_cache(maxsize=32)
def _results(function: Function, element_type: ElementType) -> Array:
    """Of every narrow float of a type, by its bits."""
    results: Array = narrower(element_type)(function(every_value(dtype_of(element_type))))
    return results


def _sub_byte(function: Function, operand_type: ElementType, result_type: ElementType) -> Function:
    dtype = carrier(operand_type)
    if not is_sub_byte(result_type):
        return lambda *operands: function(*[o.astype(dtype) for o in operands])
    return lambda *operands: wrap(function(*[o.astype(dtype) for o in operands]), result_type)


def _mixed(function: Function, operand_types: list[ElementType], result_type: ElementType) -> Function:
    dtype = dtype_of(result_type)

    def kernel(*operands: Any) -> Array:
        result: Array = function(*[widen(o, t) for o, t in zip(operands, operand_types)])
        return result.astype(dtype, copy=False)

    return kernel
