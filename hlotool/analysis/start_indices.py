"""Where the windows of slices, updates, gathers and scatters may start.

XLA clamps the starts of dynamic slices, updates and gathers so that the window lies inside, and skips windows
of a scatter that do not. XLA: operation_semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hlotool.ir.module import Instruction


@dataclass(frozen=True, slots=True)
class StartIndex:
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
