"""Which elementwise instructions of a computation are evaluated together (`blocks`), and in what order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from hlotool.backends.numpy.blocks import Blocks, BlockStep, Output, RowBlocks, Unit, code_of, writes
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.registry import Calling
from hlotool.backends.numpy.row_groups import Group, RowGroup, dims_of
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Computation, Instruction
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
    grouping = _Grouping()
    for unit in units:
        grouping.add(unit)
    grouping.close_all()
    groups = list(_by_rows(grouping.groups))
    escaping = _escaping(groups) | {root}
    return [new for group in groups for new in _merged(group, escaping)]


def _by_rows(groups: Sequence[Group]) -> Iterator[Group | RowGroup]:
    """Neighbouring groups that go through the same rows, as one."""
    rows: RowGroup | None = None
    for group in groups:
        dims = _dims(group[0].result) if is_member(group[0]) else ()
        if rows is not None:
            if dims == rows.dims:
                rows.parts.append(group)
                continue
            group = rows.take(group)
            if not group:
                continue
            if not _is_cheap(group[0]) or not {unit.result for unit in rows.units}.isdisjoint(
                group[0].operands
            ):
                yield from _closed(rows)
                rows = None
        if rows is None and len(dims) > 1:
            rows = RowGroup([group], dims)
        elif rows is None and group[0].result.opcode == "reduce":
            rows = RowGroup([], _dims(group[0].operands[0]))
            if prod(rows.dims) < _LARGE or rows.take(group):
                rows = None
                yield group
        else:
            yield group
    if rows is not None:
        yield from _closed(rows)


def _closed(rows: RowGroup) -> Sequence[Group | RowGroup]:
    """Itself, if it spares an array between elementwise instructions and a reduction."""
    return [rows] if rows.rows and any(is_member(part[0]) for part in rows.parts) else rows.parts


class _Grouping:
    """Units in their new order, with groups that are still open to new members."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self._open: dict[tuple[int, ...], Group] = {}
        self._home: dict[Instruction, tuple[int, ...]] = {}

    def add(self, unit: Unit) -> None:
        """Put a unit into the open group of its dimensions, or behind everything it depends on."""
        dims = _dims(unit.result) if is_member(unit) else None
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
    return dims_of(instruction.shape)


def _units(group: Group | RowGroup) -> Group:
    return group.units if isinstance(group, RowGroup) else group


def is_member(unit: Unit) -> bool:
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


def _escaping(groups: Sequence[Group | RowGroup]) -> set[Instruction]:
    """Values that are read outside the group that computes them."""
    home = {unit.result: number for number, group in enumerate(groups) for unit in _units(group)}
    return {
        operand
        for number, group in enumerate(groups)
        for unit in _units(group)
        for operand in unit.operands
        if home.get(operand) != number
    }


def _merged(group: Group | RowGroup, escaping: set[Instruction]) -> Iterator[Unit]:
    """The units that execute a group."""
    units = _units(group)
    if not isinstance(group, RowGroup) and not is_member(units[0]):
        yield from units
        return
    own = {unit.result for unit in units}
    inputs = tuple(dict.fromkeys(o for unit in units for o in unit.operands if o not in own))
    outputs = [unit.result for unit in units if unit.result in escaping]
    if not outputs:
        return
    if isinstance(group, RowGroup):
        kernel = Calling(_row_blocks(group, inputs, outputs))
    else:
        kernel = Calling(_blocks(group, inputs, outputs))
    if len(outputs) == 1:
        yield Unit(outputs[0], inputs, kernel)
        return
    together = _tuple_of(outputs, inputs)
    yield Unit(together, inputs, kernel)
    for number, output in enumerate(outputs):
        yield Unit(output, (together,), itemgetter(number))


def _tuple_of(values: Sequence[Instruction], operands: Sequence[Instruction]) -> Instruction:
    """What stands for all of these values, computed from `operands`; errors name it as the first of them."""
    first, shape = values[0], TupleShape(tuple(v.shape for v in values))
    return Instruction(first.name, first.opcode, shape, tuple(operands), line=first.line)


def _blocks(group: Group, inputs: Sequence[Instruction], outputs: Sequence[Instruction]) -> Blocks:
    return Blocks(*_described(RowGroup([group], _dims(group[0].result)), inputs, outputs))


def _row_blocks(group: RowGroup, inputs: Sequence[Instruction], outputs: Sequence[Instruction]) -> RowBlocks:
    reduced = {unit.operands[0] for unit in group.units if unit.result.opcode == "reduce"}
    return RowBlocks(
        _described(group, inputs, outputs),
        group.rows,
        [group.read_as(i.shape) for i in inputs],
        [i in reduced for i in inputs],
        [_dims(o) for o in outputs],
        _apart(group, inputs, outputs),
    )


def _apart(group: RowGroup, inputs: Sequence[Instruction], outputs: Sequence[Instruction]) -> Plan:
    """The parts of a group one after the other."""
    escaping = _escaping(group.parts) | set(outputs)
    units = [new for part in group.parts for new in _merged(part, escaping)]
    root = outputs[0]
    if len(outputs) > 1:
        root = _tuple_of(outputs, outputs)
        units.append(Unit(root, tuple(outputs), lambda *values: values))
    computation = Computation(root.name, [*inputs], root)
    return Plan(computation, code_of(units, inputs, {}, root))


def _described(
    group: RowGroup, inputs: Sequence[Instruction], outputs: Sequence[Instruction]
) -> tuple[tuple[int, ...], list[BlockStep], list[Output], list[np.dtype[Any]]]:
    """Dimensions, steps, outputs and registers of a group."""
    units = group.units
    numbers = {i: n for n, i in enumerate([*inputs, *(unit.result for unit in units)])}
    output_of = {instruction: number for number, instruction in enumerate(outputs)}
    last_read = {o: position for position, unit in enumerate(units) for o in unit.operands}
    last_seen = _last_seen(units, last_read)
    registers = _Registers()
    steps = []
    for position, unit in enumerate(units):
        kernel = group.kernel(unit)
        operands = tuple(numbers[o] for o in unit.operands)
        dying = {numbers[o] for o in unit.operands if last_read[o] == position}
        output = output_of.get(unit.result)
        register = None
        if output is None and writes(kernel) and unit.result not in group.of_rows:
            register = registers.take(_dtype(unit.result), position, last_seen.get(unit.result, position))
        steps.append(BlockStep(kernel, operands, tuple(dying), output, register, unit.result))
    computed_at = {unit.result: position for position, unit in enumerate(units)}
    described = [
        Output(
            _dtype(o),
            group.read_as(o.shape),
            tuple(numbers[i] for i in inputs if last_seen[i] <= computed_at[o]),
        )
        for o in outputs
    ]
    return group.dims, steps, described, registers.dtypes


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


def _last_seen(group: Group, last_read: Mapping[Instruction, int]) -> dict[Instruction, int]:
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
