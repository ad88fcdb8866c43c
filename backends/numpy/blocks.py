"""Elementwise functions on large arrays, evaluated together, block by block, so that what lies between them
stays in cache.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy import floats
from hlotool.backends.numpy.integers import choose
from hlotool.backends.numpy.plan import Code, Run, Step, failure, owns_item
from hlotool.backends.numpy.registry import Executed
from hlotool.backends.numpy.threads import each
from hlotool.errors import HlotoolError
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape

#: Bytes of one block of the widest type: a handful of them fit into a second-level cache, and one operation
#: on a block takes many times as long as calling it.
_BLOCK_BYTES = 1 << 19

#: Dimensions, outermost first, as they lie in memory.
_Order: TypeAlias = tuple[int, ...]

#: Python's operators as NumPy's functions, which can write their result into a given array.
_UFUNCS: dict[Any, np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.divide,
    operator.neg: np.negative,
    operator.and_: np.bitwise_and,
    operator.or_: np.bitwise_or,
    operator.xor: np.bitwise_xor,
    operator.lshift: np.left_shift,
    operator.eq: np.equal,
    operator.ne: np.not_equal,
    operator.lt: np.less,
    operator.le: np.less_equal,
    operator.gt: np.greater,
    operator.ge: np.greater_equal,
}


#: Kernels of our own that write their result into a given array, or return another one.
_WRITING = frozenset({choose, floats.maximum, floats.minimum})


@dataclass(frozen=True, slots=True)
class Unit:
    """What one step of a plan executes.

    Attributes:
        result: the instruction whose value it computes.
        operands: the instructions whose values it reads.
        kernel: what to call.
    """

    result: Instruction
    operands: tuple[Instruction, ...]
    kernel: Executed


def code_of(
    units: Sequence[Unit],
    parameters: Sequence[Instruction],
    known: Mapping[Instruction, Any],
    root: Instruction,
) -> Code:
    """What executes `units` in order.

    Every step frees what it is the last to read, and what the step before it made in vain.

    Args:
        units: in a valid order.
        parameters: by number; they take the first slots.
        known: values of constants.
        root: the instruction whose value is the result.
    """
    slots = {instruction: slot for slot, instruction in enumerate([*parameters, *known])}
    last_use = {operand: position for position, unit in enumerate(units) for operand in unit.operands}
    last_use[root] = len(units)
    steps = []
    unread: set[int] = set()
    for position, unit in enumerate(units):
        result = slots.setdefault(unit.result, len(slots))
        dying = {slots[o] for o in unit.operands if last_use[o] == position} | unread
        operands = tuple(slots[o] for o in unit.operands)
        steps.append(Step(unit.kernel, operands, result, tuple(dying), unit.result))
        unread = set() if unit.result in last_use else {result}
    template = [None] * len(parameters) + [*known.values()]
    template += [None] * (len(slots) - len(template))
    return Code(steps, template, slots[root], [slots[p] for p in parameters if p not in last_use])


@dataclass(frozen=True, slots=True)
class BlockStep:
    """One kernel call on a block.

    Attributes:
        kernel: an elementwise function of whole arrays.
        operands: numbers of its arguments: first come the inputs of the group, then the steps' results.
        dying: numbers that nothing reads after this step.
        output: which of the group's outputs it computes, or None.
        register: which of the group's registers holds its result, or None: an output or a new array.
        instruction: what it executes, for errors.
    """

    kernel: Callable[..., Any]
    operands: tuple[int, ...]
    dying: tuple[int, ...]
    output: int | None
    register: int | None
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Output:
    """One result of a group.

    Attributes:
        dtype: of its elements.
        dims: of the array while the group computes it.
        reusable: inputs whose blocks no step reads after the one that computes this output: it may overwrite
            them if they are of its type and have no other reference.
    """

    dtype: np.dtype[Any]
    dims: tuple[int, ...]
    reusable: tuple[int, ...]


class Blocks:
    """A group of elementwise instructions on arrays of the same dimensions.

    Called with a list of its inputs: arrays of these dimensions, or scalars. The result is one array, or a
    tuple when the group has several outputs.
    """

    def __init__(
        self,
        dims: tuple[int, ...],
        steps: Sequence[BlockStep],
        outputs: Sequence[Output],
        registers: Sequence[np.dtype[Any]],
    ) -> None:
        self.dims = dims
        self.steps = tuple(steps)
        self.outputs = tuple(outputs)
        self._block_elements = _BLOCK_BYTES // max(4, *(_item_size(s.instruction) for s in self.steps))
        self._registers = tuple(registers)
        self._code = [
            (
                _UFUNCS.get(s.kernel, s.kernel),
                writes(s.kernel),
                s.operands,
                s.dying,
                _place(s, len(outputs)),
            )
            for s in self.steps
        ]

    def __call__(self, values: list[Any], run: Run) -> Any:
        orders = _memory_orders([v for v in values if v.ndim])
        results = self._results(values, orders[0])
        inputs = [*values]
        values.clear()
        self._evaluate_all(inputs, results, block_indices(self.dims, orders, self._block_elements))
        return results[0] if len(results) == 1 else tuple(results)

    def _evaluate_all(
        self, inputs: Sequence[Any], results: Sequence[Array], indices: Iterator[tuple[slice, ...]]
    ) -> None:
        def evaluate(index: tuple[slice, ...]) -> None:
            targets = [result[index] for result in results]
            registers = self._new_registers(targets, index)
            self._evaluate([v[index] if v.ndim else v for v in inputs], targets + registers)

        each(evaluate, list(indices))

    def _new_registers(self, targets: Sequence[Array], index: tuple[slice, ...]) -> list[Array]:
        return [np.empty_like(targets[0], dtype) for dtype in self._registers]

    def _results(self, values: list[Any], order: _Order) -> list[Array]:
        """An array for every output: an input that is not needed any more, or a new one."""
        free = [i for i in range(len(values)) if _order_of(values[i]) == order and owns_item(values, i)]
        results = []
        for output in self.outputs:
            fitting = [
                i
                for i in free
                if i in output.reusable and (values[i].dtype, values[i].shape) == (output.dtype, output.dims)
            ]
            if fitting:
                free.remove(fitting[0])
                results.append(values[fitting[0]])
            else:
                results.append(_empty(output.dims, output.dtype, order))
        return results

    def _evaluate(self, slots: list[Any], targets: list[Array]) -> None:
        """Compute one block; targets are those of the outputs and, behind them, the registers."""
        inputs = len(slots)
        try:
            for kernel, is_writing, operands, dying, place in self._code:
                values = [slots[i] for i in operands]
                for i in dying:
                    slots[i] = None
                if place is None:
                    slots.append(kernel(*values))
                elif is_writing:
                    value = kernel(*values, out=targets[place])
                    if value is not targets[place] and place < len(self.outputs):
                        targets[place][...] = value
                    slots.append(value)
                else:
                    targets[place][...] = kernel(*values)
                    slots.append(targets[place])
        except HlotoolError:
            raise
        except Exception as error:
            raise failure(self.steps[len(slots) - inputs].instruction, error) from error


class RowBlocks(Blocks):
    """A group in which numbers that belong to a whole row are computed, too: reductions of rows and the like.

    The first dimensions of `dims` number the rows. What belongs to a row has those dimensions, and size 1 in
    the others, so that it goes with the row.

    Args:
        rows: how many dimensions number the rows.
        shapes: dimensions in which the group reads its inputs; none for scalars.
        reduced: of each input whether a reduction reads it.
        results: dimensions of its outputs as they are declared.
        apart: executes the same instructions one group after the other. Only of rows that lie in memory one
            behind the other are sums made in the same order block by block.
    """

    def __init__(
        self,
        blocks: tuple[tuple[int, ...], Sequence[BlockStep], Sequence[Output], Sequence[np.dtype[Any]]],
        rows: int,
        shapes: Sequence[tuple[int, ...]],
        reduced: Sequence[bool],
        results: Sequence[tuple[int, ...]],
        apart: Callable[[list[Any], Run], Any],
    ) -> None:
        super().__init__(*blocks)
        self._rows = rows
        self._shapes = tuple(shapes)
        self._reduced = tuple(reduced)
        self._declared = tuple(results)
        self._apart = apart

    def __call__(self, values: list[Any], run: Run) -> Any:
        row_major = tuple(range(len(self.dims)))
        orders = [_order_of(v) if v.shape == self.dims else row_major for v in values]
        if any(order != row_major and (order or reduced) for order, reduced in zip(orders, self._reduced)):
            return self._apart(values, run)
        results = self._results(values, row_major)
        inputs = [v.reshape(dims) if v.ndim else v for v, dims in zip(values, self._shapes)]
        values.clear()
        leading = self.dims[: self._rows]
        # Twice as many elements as elsewhere: half of the calls are on one number for each row.
        rows = max(1, 2 * self._block_elements // prod(self.dims[self._rows :]))
        self._evaluate_all(inputs, results, block_indices(leading, [tuple(range(self._rows))], rows))
        named = [result.reshape(dims) for result, dims in zip(results, self._declared)]
        return named[0] if len(named) == 1 else tuple(named)

    def _new_registers(self, targets: Sequence[Array], index: tuple[slice, ...]) -> list[Array]:
        sizes = [len(range(size)[part]) for size, part in zip(self.dims, index)]
        return [np.empty((*sizes, *self.dims[self._rows :]), dtype) for dtype in self._registers]


def writes(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel can write its result into a given array, as functions of NumPy's can."""
    return isinstance(_UFUNCS.get(kernel, kernel), np.ufunc) or kernel in _WRITING


def _place(step: BlockStep, outputs: int) -> int | None:
    """Where the result of a step goes among the outputs and, behind them, the registers."""
    return step.output if step.register is None else outputs + step.register


def block_indices(
    dims: Sequence[int], orders: Sequence[_Order], elements: int
) -> Iterator[tuple[slice, ...]]:
    """Indices that cut arrays of `dims` into blocks of about so many elements.

    Args:
        dims: sizes of the dimensions.
        orders: those in which the arrays lie in memory; blocks are long in the innermost dimension of each.
        elements: of one block.
    """
    extents = [1] * len(dims)
    innermost = {order[-1] for order in orders}
    room = elements
    if len(innermost) > 1:
        side = max(1, int(elements ** (1 / len(innermost))))
        for dim in innermost:
            extents[dim] = min(dims[dim], side)
            room //= extents[dim]
    for dim in reversed(orders[0]):
        extent = min(dims[dim], max(1, extents[dim] * room))
        room = max(1, room * extents[dim] // extent)
        extents[dim] = extent
    for starts in product(*(range(0, size, extent) for size, extent in zip(dims, extents))):
        yield tuple(slice(start, start + extent) for start, extent in zip(starts, extents))


def _memory_orders(arrays: Sequence[Array]) -> list[_Order]:
    """How the arrays lie in memory, row-major first; those that repeat elements do not count."""
    row_major = tuple(range(arrays[0].ndim))
    orders = {_order_of(a) for a in arrays} - {None}
    return sorted((o for o in orders if o is not None), key=lambda o: o != row_major) or [row_major]


def _order_of(array: Array) -> _Order | None:
    """The dimensions, outermost first; those of one element are anywhere, so they come first."""
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    strides = [abs(stride) if size > 1 else sys.maxsize for size, stride in zip(array.shape, array.strides)]
    return None if 0 in strides else tuple(sorted(range(array.ndim), key=lambda d: -strides[d]))


def _empty(dims: Sequence[int], dtype: np.dtype[Any], order: _Order) -> Array:
    """An array whose dimensions lie in memory in that order."""
    inverse = sorted(range(len(order)), key=lambda d: order[d])
    return np.empty([dims[d] for d in order], dtype).transpose(inverse)


def _item_size(instruction: Instruction) -> int:
    shape = instruction.shape
    return dtype_of(shape.element_type).itemsize if isinstance(shape, ArrayShape) else 0
