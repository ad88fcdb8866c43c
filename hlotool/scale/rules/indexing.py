"""Slices whose place is known at run time only: gather, scatter, dynamic-slice, dynamic-update-slice."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.ir.module import Instruction
from hlotool.scale.rules.base import Relations, Restated, relates
from hlotool.scale.terms import Size


def _parts(known: Relations, wholes: Sequence[Size], parts: Sequence[Size]) -> None:
    """A window is all of a dimension, one element, or no larger than it."""
    for whole, part in zip(wholes, parts):
        if whole.value == part.value:
            known.sizes.unify(whole, part)
        elif part.value > 1:
            known.sizes.no_larger(part, whole)


@relates("dynamic-slice")
def dynamic_slice(known: Relations, instruction: Instruction) -> Restated:
    """The result is a window of the operand."""
    result = known.of(instruction)
    _parts(known, known.of(instruction.operands[0]), result)
    _free_of_places(known, instruction.operands[1:])
    return lambda number: {"dynamic_slice_sizes": tuple(map(number, result))}


@relates("dynamic-update-slice")
def dynamic_update_slice(known: Relations, instruction: Instruction) -> None:
    """The update is a window of the operand, which the result is like."""
    operand, update = known.of(instruction.operands[0]), known.of(instruction.operands[1])
    known.sizes.unify_all(operand, known.of(instruction))
    _parts(known, operand, update)
    _free_of_places(known, instruction.operands[2:])


def _free_of_places(known: Relations, places: Sequence[Instruction]) -> None:
    """Where a window begins: scalars, or a vector with a number for each dimension."""
    for one in places:
        known.freeze(one, "a number for each dimension")


@relates("gather")
def gather(known: Relations, instruction: Instruction) -> Restated:
    """Windows of the operand, one for each vector of indices."""
    sizes = known.sizes
    operand, indices = (known.of(one) for one in instruction.operands)
    result, old = known.of(instruction), instruction.integers("slice_sizes")
    windows = [sizes.new(size) for size in old]
    _parts(known, operand, windows)
    batching = instruction.integers("operand_batching_dims", ())
    gone = (*instruction.integers("collapsed_slice_dims"), *batching)
    offsets = instruction.integers("offset_dims")
    seen = [window for number, window in enumerate(windows) if number not in gone]
    for size, window in zip((result[d] for d in offsets), seen):
        sizes.unify(size, window)
    _batches(
        known, instruction, operand, indices, [s for n, s in enumerate(result) if n not in offsets], batching
    )
    sizes.freeze_all([s for n, s in enumerate(windows) if n in gone], "one element")
    return lambda number: {"slice_sizes": tuple(map(number, windows))}


def _batches(
    known: Relations,
    instruction: Instruction,
    operand: Sequence[Size],
    indices: Sequence[Size],
    batches: Sequence[Size],
    batching: Sequence[int],
) -> None:
    """All dimensions of the indices but the vector's are those of the result that no window has."""
    vector = instruction.integer("index_vector_dim")
    if vector < len(indices):
        known.sizes.freeze(indices[vector], "a number for each dimension")
    known.sizes.unify_all([s for n, s in enumerate(indices) if n != vector], batches)
    name = (
        "start_indices_batching_dims" if instruction.opcode == "gather" else "scatter_indices_batching_dims"
    )
    for one, other in zip(batching, instruction.integers(name, ())):
        known.sizes.unify(operand[one], indices[other])


@relates("scatter")
def scatter(known: Relations, instruction: Instruction) -> None:
    """Windows of updates, one for each vector of indices, go into operands that the results are like."""
    count = len(instruction.operands) // 2
    operands = [known.of(one) for one in instruction.operands[:count]]
    indices = known.of(instruction.operands[count])
    for operand, result in zip(operands, known.leaves(instruction)):
        known.sizes.unify_all(operand, result)
    batching = instruction.integers("input_batching_dims", ())
    gone = (*instruction.integers("inserted_window_dims"), *batching)
    windows = instruction.integers("update_window_dims")
    for operand, update in zip(operands, map(known.of, instruction.operands[count + 1 :])):
        known.sizes.unify_all(operands[0], operand)
        kept = [size for number, size in enumerate(operand) if number not in gone]
        _parts(known, kept, [update[d] for d in windows])
        free = [size for number, size in enumerate(update) if number not in windows]
        _batches(known, instruction, operand, indices, free, batching)
