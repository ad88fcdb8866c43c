"""Elementwise instructions that are evaluated together, block by block, so that what lies between them
stays in cache.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.plan import Run, each, failure, owns_item
from hlotool.backends.numpy.registry import Calling, Executed
from hlotool.errors import HlotoolError
from hlotool.ir.arrays import Array, dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, TupleShape

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
        reusable: inputs whose blocks no step reads after the one that computes this output: it may overwrite
            them if they are of its type and have no other reference.
    """

    dtype: np.dtype[Any]
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
                _is_ufunc(s.kernel),
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

        def evaluate(index: tuple[slice, ...]) -> None:
            self._evaluate([v[index] if v.ndim else v for v in inputs], [result[index] for result in results])

        each(evaluate, list(block_indices(self.dims, orders, self._block_elements)))
        return results[0] if len(results) == 1 else tuple(results)

    def _results(self, values: list[Any], order: _Order) -> list[Array]:
        """An array for every output: an input that is not needed any more, or a new one."""
        free = [i for i in range(len(values)) if _order_of(values[i]) == order and owns_item(values, i)]
        results = []
        for output in self.outputs:
            fitting = [i for i in free if i in output.reusable and values[i].dtype == output.dtype]
            if fitting:
                free.remove(fitting[0])
                results.append(values[fitting[0]])
            else:
                results.append(_empty(self.dims, output.dtype, order))
        return results

    def _evaluate(self, slots: list[Any], targets: list[Array]) -> None:
        """Compute one block of all outputs."""
        inputs = len(slots)
        targets += [np.empty_like(targets[0], dtype) for dtype in self._registers]
        try:
            for kernel, is_ufunc, operands, dying, place in self._code:
                values = [slots[i] for i in operands]
                for i in dying:
                    slots[i] = None
                if place is None:
                    slots.append(kernel(*values))
                elif is_ufunc:
                    slots.append(kernel(*values, out=targets[place]))
                else:
                    targets[place][...] = kernel(*values)
                    slots.append(targets[place])
        except HlotoolError:
            raise
        except Exception as error:
            raise failure(self.steps[len(slots) - inputs].instruction, error) from error


def _is_ufunc(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel is a function of NumPy's, which can write its result into a given array."""
    return isinstance(_UFUNCS.get(kernel, kernel), np.ufunc)


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


#: Arrays of fewer elements are evaluated at once.
_LARGE = 1 << 18

#: Elementwise by name, but they may call a computation for every element.
_EXCLUDED = frozenset({"map"})

#: Elementwise instructions whose kernel may return its operand or a view of it.
MAY_RETURN_OPERAND = frozenset({"convert", "imag", "real", "select"})

_CHEAP_CLASSES = (Class.SOURCE, Class.TUPLE, Class.ANNOTATION)

#: They move no data, or seldom, whatever the size: a slice is copied if it is a small part (`detached`).
_VIEWS = opcodes_with(Trait.REGROUPS) | {"slice"}


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


def fused(units: Sequence[Unit], root: Instruction) -> Sequence[Unit]:
    """The same computation with groups of elementwise instructions in one unit each.

    Args:
        units: one per instruction, in a valid order.
        root: the instruction whose value is the result.
    """
    if not any(map(_is_member, units)):
        return units
    grouping = _Grouping()
    for unit in units:
        grouping.add(unit)
    grouping.close_all()
    escaping = _escaping(grouping.groups) | {root}
    return [new for group in grouping.groups for new in _merged(group, escaping)]


#: Elementwise units that are executed together, or a single unit of any kind.
_Group = list[Unit]


class _Grouping:
    """Units in their new order, with groups that are still open to new members."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []
        self._open: dict[tuple[int, ...], _Group] = {}
        self._home: dict[Instruction, tuple[int, ...]] = {}

    def add(self, unit: Unit) -> None:
        """Put a unit into the open group of its dimensions, or behind everything it depends on."""
        dims = _dims(unit.result) if _is_member(unit) else None
        for operand in unit.operands:
            home = self._home.get(operand)
            if home is not None and home != dims:
                self._close(home)
        if dims is not None:
            self._open.setdefault(dims, []).append(unit)
            self._home[unit.result] = dims
            return
        if not _is_cheap(unit):
            self.close_all()
        self.groups.append([unit])

    def close_all(self) -> None:
        """Nothing joins the open groups any more."""
        for dims in list(self._open):
            self._close(dims)

    def _close(self, dims: tuple[int, ...]) -> None:
        group = self._open.pop(dims)
        self.groups.append(group)
        for unit in group:
            del self._home[unit.result]


def _dims(instruction: Instruction) -> tuple[int, ...]:
    return instruction.shape.dims if isinstance(instruction.shape, ArrayShape) else ()


def _is_member(unit: Unit) -> bool:
    """Whether it is elementwise on large arrays, all of the same dimensions apart from scalars."""
    shape, row = unit.result.shape, unit.result.row
    if row.opcode_class is not Class.ELEMENTWISE or row.name in _EXCLUDED or isinstance(unit.kernel, Calling):
        return False
    if not isinstance(shape, ArrayShape) or shape.is_dynamic or shape.size < _LARGE:
        return False
    return all(_dims(operand) in ((), shape.dims) for operand in unit.operands)


def _is_cheap(unit: Unit) -> bool:
    """Whether it may be executed earlier than in the text at no cost in time or memory."""
    row, shape = unit.result.row, unit.result.shape
    if row.opcode_class in _CHEAP_CLASSES or row.name in _VIEWS:
        return True
    movement_or_math = row.opcode_class in (Class.ELEMENTWISE, Class.DATA_MOVEMENT)
    return movement_or_math and isinstance(shape, ArrayShape) and shape.size < _LARGE


def _escaping(groups: Sequence[_Group]) -> set[Instruction]:
    """Values that are read outside the group that computes them."""
    home = {unit.result: number for number, group in enumerate(groups) for unit in group}
    return {
        operand
        for number, group in enumerate(groups)
        for unit in group
        for operand in unit.operands
        if home.get(operand) != number
    }


def _merged(group: _Group, escaping: set[Instruction]) -> Iterator[Unit]:
    """The units that execute a group."""
    if not _is_member(group[0]):
        yield from group
        return
    own = {unit.result for unit in group}
    inputs = tuple(dict.fromkeys(o for unit in group for o in unit.operands if o not in own))
    outputs = [unit.result for unit in group if unit.result in escaping]
    if not outputs:
        return
    kernel = Calling(_blocks(group, inputs, outputs))
    if len(outputs) == 1:
        yield Unit(outputs[0], inputs, kernel)
        return
    first, shapes = outputs[0], TupleShape(tuple(o.shape for o in outputs))
    together = Instruction(first.name, first.opcode, shapes, inputs, line=first.line)
    yield Unit(together, inputs, kernel)
    for number, output in enumerate(outputs):
        yield Unit(output, (together,), itemgetter(number))


def _blocks(group: _Group, inputs: Sequence[Instruction], outputs: Sequence[Instruction]) -> Blocks:
    numbers = {i: n for n, i in enumerate([*inputs, *(unit.result for unit in group)])}
    output_of = {instruction: number for number, instruction in enumerate(outputs)}
    last_read = {o: position for position, unit in enumerate(group) for o in unit.operands}
    last_seen = _last_seen(group, last_read)
    registers = _Registers()
    steps = []
    for position, unit in enumerate(group):
        kernel = _function(unit)
        operands = tuple(numbers[o] for o in unit.operands)
        dying = {numbers[o] for o in unit.operands if last_read[o] == position}
        output = output_of.get(unit.result)
        register = None
        if output is None and _is_ufunc(kernel):
            register = registers.take(_dtype(unit.result), position, last_seen.get(unit.result, position))
        steps.append(BlockStep(kernel, operands, tuple(dying), output, register, unit.result))
    computed_at = {unit.result: position for position, unit in enumerate(group)}
    described = [
        Output(_dtype(o), tuple(numbers[i] for i in inputs if last_seen[i] <= computed_at[o]))
        for o in outputs
    ]
    return Blocks(_dims(group[0].result), steps, described, registers.dtypes)


class _Registers:
    """Arrays for what lies between the steps of a group; one that is not read any more is written to again.

    Attributes:
        dtypes: of all registers.
    """

    def __init__(self) -> None:
        self.dtypes: list[np.dtype[Any]] = []
        self._read_until: list[int] = []

    def take(self, dtype: np.dtype[Any], position: int, until: int) -> int:
        """A register for what a step computes and others read, the last of them at `until`.

        An elementwise function may overwrite what it reads itself.
        """
        for number, own in enumerate(self.dtypes):
            if own == dtype and self._read_until[number] <= position:
                self._read_until[number] = until
                return number
        self.dtypes.append(dtype)
        self._read_until.append(until)
        return len(self.dtypes) - 1


def _function(unit: Unit) -> Callable[..., Any]:
    if isinstance(unit.kernel, Calling):
        raise TypeError(f"{unit.result} is not elementwise")
    return unit.kernel


def _last_seen(group: _Group, last_read: Mapping[Instruction, int]) -> dict[Instruction, int]:
    """Position of the last unit that reads a value or another name for it."""
    seen = dict(last_read)
    for unit in reversed(group):
        if unit.result.opcode in MAY_RETURN_OPERAND:
            for operand in unit.operands:
                seen[operand] = max(seen[operand], seen.get(unit.result, -1))
    return seen


def _dtype(instruction: Instruction) -> np.dtype[Any]:
    shape = instruction.shape
    if not isinstance(shape, ArrayShape):
        raise TypeError(f"{instruction} is no array")
    return dtype_of(shape.element_type)
