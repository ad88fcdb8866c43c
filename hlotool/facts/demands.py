"""What an instruction asks of a value so that the program makes sense, and where windows may start.

A demand starts at the instruction that needs it, travels backwards through the instructions that make the
value, and ends at entry parameters, whose values are chosen to meet it.

XLA clamps the starts of dynamic slices, updates and gathers so that the window lies inside, and skips
windows of a scatter that do not. XLA: operation_semantics.md.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from hlotool.facts.ranges import Interval
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Identity


class InRange(Struct, frozen=True):
    """Numbers must lie in an interval.

    Attributes:
        intervals: one for all elements, or one per position along `axis`.
        axis: None when there is one interval.
        required: False for indices, which XLA clamps or skips: values out of range are legal, but useless.
    """

    intervals: tuple[Interval, ...]
    axis: int | None = None
    required: bool = True

    @property
    def narrowest(self) -> Interval:
        """The numbers that are allowed at every position: the intersection of all intervals."""
        result = self.intervals[0]
        for interval in self.intervals[1:]:
            result = result.intersect(interval)
        return result


class Ordered(Struct, frozen=True):
    """Elements (or vectors along `axis`) must be distinct, or in ascending order, or both.

    Attributes:
        distinct: no two alike.
        ascending: sorted in row-major order; vectors lexicographically.
        axis: that of the vectors, or None when elements are compared.
        batch: dimensions whose positions are separate groups.
    """

    distinct: bool
    ascending: bool
    axis: int | None = None
    batch: tuple[int, ...] = ()


class Exactly(Struct, frozen=True):
    """Every element must be one value."""

    value: Identity


class MatrixKind(enum.Enum):
    """What a linear solver needs of its matrix."""

    POSITIVE_DEFINITE = "symmetric positive definite"
    LOWER = "well-conditioned lower triangle"
    UPPER = "well-conditioned upper triangle"

    @property
    def transposed(self) -> MatrixKind:
        """The kind of the transposed matrix."""
        pairs = {MatrixKind.LOWER: MatrixKind.UPPER, MatrixKind.UPPER: MatrixKind.LOWER}
        return pairs.get(self, self)


class Matrix(Struct, frozen=True):
    """The last two dimensions must be matrices of a kind."""

    kind: MatrixKind


class Scaled(Struct, frozen=True):
    """Floats should be about this large, so that sums of products stay near 1."""

    factor: float


class AnyBits(Struct, frozen=True):
    """Integers should use their whole width: the state of a random number generator."""


Demand: TypeAlias = InRange | Ordered | Exactly | Matrix | Scaled | AnyBits


class StartIndex(Struct, frozen=True):
    """One component of the starts.

    Attributes:
        operand: number of the operand that holds it.
        axis: of that operand along which the components lie; None where it holds this one alone.
        position: along that axis.
        dimension: of the array that the window lies in.
        limit: the last start of a window that lies inside, at least 0.
    """

    operand: int
    axis: int | None
    position: int
    dimension: int
    limit: int


def start_indices(instruction: Instruction) -> tuple[StartIndex, ...]:
    """The components that an instruction reads, in the order of its index operands; none of other opcodes."""
    rule = _RULES.get(instruction.opcode)
    return tuple(rule(instruction)) if rule is not None else ()


def _dynamic_slice(instruction: Instruction) -> Iterator[StartIndex]:
    sizes = instruction.integers("dynamic_slice_sizes", ())
    return _scalars(instruction, 1, sizes)


def _dynamic_update_slice(instruction: Instruction) -> Iterator[StartIndex]:
    return _scalars(instruction, 2, instruction.operands[1].dims)


def _scalars(instruction: Instruction, first: int, sizes: Sequence[int]) -> Iterator[StartIndex]:
    """One scalar operand per dimension, or all in one array (old form)."""
    is_vector = len(instruction.operands) > first and instruction.operands[first].array_shape.rank == 1
    limits = _limits(instruction.operands[0].dims, sizes)
    for dimension, limit in enumerate(limits):
        if is_vector:
            yield StartIndex(first, 0, dimension, dimension, limit)
        elif first + dimension < len(instruction.operands):
            yield StartIndex(first + dimension, None, 0, dimension, limit)


def _gather(instruction: Instruction) -> Iterator[StartIndex]:
    sizes = instruction.integers("slice_sizes", ())
    return _vectors(instruction, 1, instruction.integers("start_index_map", ()), sizes)


def _scatter(instruction: Instruction) -> Iterator[StartIndex]:
    operand = len(instruction.operands) // 2
    mapped = instruction.integers("scatter_dims_to_operand_dims", ())
    return _vectors(instruction, operand, mapped, _scatter_window(instruction, operand))


def _vectors(
    instruction: Instruction, operand: int, mapped: Sequence[int], sizes: Sequence[int]
) -> Iterator[StartIndex]:
    """Index vectors; an `index_vector_dim` behind the last dimension means scalars."""
    vector = instruction.integer("index_vector_dim")
    axis = vector if vector < instruction.operands[operand].array_shape.rank else None
    limits = _limits(instruction.operands[0].dims, sizes)
    for position, dimension in enumerate(mapped):
        yield StartIndex(operand, axis, position, dimension, limits[dimension])


def _scatter_window(instruction: Instruction, operand: int) -> list[int]:
    """Extent of an update window in each dimension of the scattered-to array."""
    updates = instruction.operands[operand + 1].dims
    window = iter(instruction.integers("update_window_dims", ()))
    single = {
        *instruction.integers("inserted_window_dims", ()),
        *instruction.integers("input_batching_dims", ()),
    }
    return [
        1 if d in single else updates[next(window)] for d in range(instruction.operands[0].array_shape.rank)
    ]


def _limits(dims: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [max(0, dim - size) for dim, size in zip(dims, sizes)]


_RULES: Final[dict[str, Callable[[Instruction], Iterator[StartIndex]]]] = {
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
}
