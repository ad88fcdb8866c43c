"""Which elementwise instructions of a computation are evaluated together (`blocks`), and in what order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from hlotool.backends.numpy.blocks import Blocks, BlockStep, Output, Unit, writes
from hlotool.backends.numpy.registry import Calling
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, TupleShape

#: Arrays of fewer elements are evaluated at once.
_LARGE = 1 << 18

#: Elementwise by name, but they may call a computation for every element.
_EXCLUDED = frozenset({"map"})

#: Elementwise instructions whose kernel may return its operand or a view of it.
MAY_RETURN_OPERAND = frozenset({"convert", "imag", "real", "select"})

_CHEAP_CLASSES = (Class.SOURCE, Class.TUPLE, Class.ANNOTATION)

#: They move no data, or seldom, whatever the size: a slice is copied if it is a small part (`detached`).
_VIEWS = opcodes_with(Trait.REGROUPS) | {"slice"}


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
        if output is None and writes(kernel):
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
