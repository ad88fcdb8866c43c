"""Groups of instructions that go through the same rows: softmax, layer normalization and the like.

Elementwise instructions on large arrays, reductions of their rows, what is made of these numbers row by row,
and its broadcasts: none of them reads more than one row for one row of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np

from hlotool.backends.numpy.blocks import Unit
from hlotool.backends.numpy.registry import Calling
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape, Shape

#: Elements of a row: shorter ones are reduced column by column, longer ones are blocks by themselves.
_SHORTEST, _LONGEST = 16, 1 << 16

#: Units that are executed together, in order: elementwise ones of the same dimensions, or one of any kind.
Group = list[Unit]


@dataclass(slots=True)
class RowGroup:
    """Groups that can be executed together for some rows at a time.

    Attributes:
        parts: the groups, in order.
        dims: of the arrays.
        rows: how many dimensions number the rows; 0 as long as no reduction says so.
        of_rows: what has one element for each row.
    """

    parts: list[Group]
    dims: tuple[int, ...]
    rows: int = 0
    of_rows: set[Instruction] = field(default_factory=set)

    @property
    def units(self) -> Group:
        """All of them, in order."""
        return [unit for part in self.parts for unit in part]

    def take(self, group: Group) -> Group:
        """Take in what is not elementwise on whole arrays as far as it keeps to the rows; return the rest."""
        for position, unit in enumerate(group):
            if isinstance(unit.kernel, Calling) or not self._fits(unit.result, unit.operands):
                return group[position:]
            if dims_of(unit.result.shape) != self.dims:
                self.of_rows.add(unit.result)
            self.parts.append([unit])
        return []

    def _fits(self, instruction: Instruction, operands: Sequence[Instruction]) -> bool:
        if instruction.opcode == "reduce":
            rows = _reduced_rows(instruction)
            if not rows or self.rows not in (0, rows) or dims_of(operands[0].shape) != self.dims:
                return False
            self.rows = rows
            return True
        if self.of_rows.isdisjoint(operands):
            return False
        if instruction.opcode == "broadcast":
            return self._is_in_order(instruction)
        if not self._is_of_rows(instruction.shape):
            return False
        if instruction.opcode == "reshape":
            return True
        is_elementwise = instruction.row.opcode_class is Class.ELEMENTWISE and instruction.opcode != "map"
        return is_elementwise and all(not dims_of(o.shape) or self._is_of_rows(o.shape) for o in operands)

    def _is_of_rows(self, shape: Shape) -> bool:
        """Whether it has the dimensions that number the rows, and perhaps others of size 1."""
        return _longer(dims_of(shape)) == _longer(self.dims[: self.rows])

    def _is_in_order(self, broadcast: Instruction) -> bool:
        """Whether the rows stay in order, and those of `dims` get what is theirs."""
        dimensions = broadcast.integers("dimensions", ())
        sizes = dims_of(broadcast.operands[0].shape)
        places = [place for place, size in zip(dimensions, sizes) if size > 1]
        if self._is_of_rows(broadcast.shape):
            return places == sorted(places)
        rows = [place for place, size in enumerate(self.dims[: self.rows]) if size > 1]
        return dims_of(broadcast.shape) == self.dims and places == rows

    def read_as(self, shape: Shape) -> tuple[int, ...]:
        """The dimensions in which a value goes with the rows; none for a scalar."""
        dims = dims_of(shape)
        if dims in ((), self.dims):
            return dims
        return (*self.dims[: self.rows], *(1 for _ in self.dims[self.rows :]))

    def kernel(self, unit: Unit) -> Callable[..., Any]:
        """What executes a unit on such values, of some rows."""
        result = unit.result
        assert not isinstance(unit.kernel, Calling)
        if result.opcode == "reduce":
            return partial(_reduced, unit.kernel, len(self.dims) - self.rows)
        if result in self.of_rows and result.opcode in ("broadcast", "reshape"):
            return _as_it_is
        if not self.of_rows.isdisjoint(unit.operands) and result.opcode == "broadcast":
            return partial(_spread, self.dims[self.rows :])
        return unit.kernel


def _reduced(kernel: Callable[..., Array], ones: int, x: Array, init: Array) -> Array:
    numbers = kernel(x, init)
    return numbers.reshape(numbers.shape + (1,) * ones)


def _as_it_is(values: Array) -> Array:
    return values


def _spread(row: tuple[int, ...], values: Array) -> Array:
    """One number for each row, repeated along it."""
    count = values.ndim - len(row)
    dims = (*values.shape[:count], *row)
    if not values.flags.c_contiguous:
        return np.broadcast_to(values, dims)
    # Eight times as fast.
    view: Array = np.ndarray(dims, values.dtype, values, 0, (*values.strides[:count], *(0 for _ in row)))
    view.flags.writeable = False
    return view


def _reduced_rows(reduce: Instruction) -> int:
    """How many dimensions number the rows that are reduced; 0 unless each lies behind the one before."""
    if len(reduce.operands) != 2:
        return 0
    dims = dims_of(reduce.operands[0].shape)
    axes = sorted(reduce.integers("dimensions"))
    rows = len(dims) - len(axes)
    is_trailing = axes == list(range(rows, len(dims))) and not _is_dynamic(reduce.operands[0].shape)
    fits = prod(dims[:rows]) > 1 and _SHORTEST <= prod(dims[rows:]) <= _LONGEST
    return rows if is_trailing and fits else 0


def dims_of(shape: Shape) -> tuple[int, ...]:
    """Dimensions of an array; none for a scalar and what is no array."""
    return shape.dims if isinstance(shape, ArrayShape) else ()


def _is_dynamic(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and shape.is_dynamic


def _longer(dims: Sequence[int]) -> list[int]:
    return [size for size in dims if size > 1]
