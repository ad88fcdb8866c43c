"""Symbols of operations whose elements depend on some elements of their operands only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hlotool.analysis.machine_range import of_integers
from hlotool.ir.dtypes import dtype_of
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape
from hlotool.locate.evaluation import OnReference
from hlotool.search.mutation.hashing import Symbols, along, bag, combined, key_of, numbered, of_values, whole
from hlotool.search.mutation.scatters import scattered_to_places
from hlotool.search.mutation.terms import Gathered, Term

#: What puts elements at other places.
MOVEMENT: Final = opcodes_with(Trait.MOVES)


class Arrays:
    """Moves symbols as a program moves elements.

    Args:
        evaluator: of single instructions.
    """

    def __init__(self, evaluator: OnReference) -> None:
        self._evaluator = evaluator

    def symbols(
        self, instruction: Instruction, operands: Sequence[Term], said: Sequence[object]
    ) -> Symbols | None:
        """The symbols of a result; None of what is no such operation, or of a form that is not understood.

        Args:
            instruction: the operation.
            operands: of it.
            said: what its attributes say.
        """
        opcode = instruction.opcode
        if opcode in MOVEMENT and _keeps_type(instruction):
            return self.moved(instruction, [o.symbols for o in operands], [])
        if opcode in ("dynamic-slice", "dynamic-update-slice"):
            return self._sliced(instruction, operands)
        if opcode == "gather":
            return _gathered(instruction, operands, said)
        if opcode == "scatter" and len(operands) == 3:
            found = scattered_to_places(instruction, operands)
            return _scattered(instruction, operands, said) if found is None else found
        return _dot(instruction, operands) if opcode == "dot" else None

    def moved(
        self, instruction: Instruction, arrays: Sequence[Symbols], starts: Sequence[Any]
    ) -> Symbols | None:
        """The same movement of symbols."""
        words = tuple(
            Instruction(f"s{n}", "parameter", _as_words(o.shape), parameter_number=n)
            if n < len(arrays)
            else o
            for n, o in enumerate(instruction.operands)
        )
        moving = Instruction(
            instruction.name, instruction.opcode, _as_words(instruction.shape), words, instruction.attributes
        )
        value = self._evaluator.apply(moving, [*(np.array(a, order="C") for a in arrays), *starts])
        return None if value is None else np.asarray(value, np.uint64)

    def _sliced(self, instruction: Instruction, operands: Sequence[Term]) -> Symbols | None:
        """The part at known starts; at others, what it is depends on where XLA's clamp puts them."""
        count = 1 if instruction.opcode == "dynamic-slice" else 2
        starts = operands[count:]
        sizes = instruction.dims if count == 1 else instruction.operands[1].dims
        if len(starts) != len(sizes):
            return None
        limits = [dim - size for dim, size in zip(instruction.operands[0].dims, sizes)]
        effective = [_clamped(start, limit) for start, limit in zip(starts, limits)]
        parts = [o.symbols for o in operands[:count]]
        if all(start.known is not None for start in effective):
            places = [
                np.asarray(start.known).astype(dtype_of(o.element_type))
                for start, o in zip(effective, instruction.operands[count:])
            ]
            return self.moved(instruction, parts, places)
        key = key_of(instruction.opcode, instruction.shape)
        whole_key = combined(key, *map(whole, parts), *(start.symbols for start in effective))
        return numbered(np.uint64(whole_key), instruction.dims)


def _keeps_type(instruction: Instruction) -> bool:
    return all(o.element_type is instruction.element_type for o in instruction.operands)


def gathered(instruction: Instruction, operands: Sequence[Term], said: Sequence[object]) -> Gathered | None:
    """What a gather reads, and where; None of other operations, and of several components of indices.

    Args:
        instruction: the operation.
        operands: of it.
        said: what its attributes say.
    """
    if instruction.opcode != "gather" or len(instruction.integers("start_index_map")) != 1:
        return None
    operand, index = operands
    (dimension,) = instruction.integers("start_index_map")
    limit = instruction.operands[0].dims[dimension] - instruction.integers("slice_sizes")[dimension]
    axis = instruction.integer("index_vector_dim")

    def rows(symbols: Symbols) -> Symbols:
        found = symbols if axis == symbols.ndim else np.squeeze(symbols, axis)
        for place in sorted(instruction.integers("offset_dims", ())):
            found = np.expand_dims(found, place)
        return np.broadcast_to(found, instruction.dims)

    def at(other: Term) -> Term:
        symbols = _gathered(instruction, (operand, other), said)
        assert symbols is not None
        return Term(symbols, operand.bounds)

    return Gathered(index, instruction.operands[1].element_type, limit, rows, at)


def _gathered(instruction: Instruction, operands: Sequence[Term], said: Sequence[object]) -> Symbols | None:
    """XLA clamps: what an index is beyond the end does not matter."""
    operand, index = operands
    mapped = instruction.integers("start_index_map")
    if len(mapped) != 1:
        return None
    limit = instruction.operands[0].dims[mapped[0]] - instruction.integers("slice_sizes")[mapped[0]]
    key = key_of("gather", instruction.shape, *said)
    parts = whole(operand.symbols), whole(_clamped(index, limit).symbols)
    return numbered(np.uint64(combined(key, *parts)), instruction.dims)


def _scattered(instruction: Instruction, operands: Sequence[Term], said: Sequence[object]) -> Symbols | None:
    """Where all updates are one number, their order does not matter."""
    operand, index, updates = operands
    if not updates.symbols.size or (updates.symbols != updates.symbols.flat[0]).any():
        return None
    dimension = instruction.integer("index_vector_dim")
    rows = index.symbols if dimension == index.symbols.ndim else along(index.symbols, (dimension,))
    key = key_of("scatter of one number", instruction.shape, *said)
    parts = whole(operand.symbols), bag(rows), np.asarray(updates.symbols.flat[0])
    return numbered(np.uint64(combined(key, *parts)), instruction.dims)


def _dot(instruction: Instruction, operands: Sequence[Term]) -> Symbols:
    """A row and a column make an element, whatever their product is."""
    sides = []
    for side, term in zip(("lhs", "rhs"), operands):
        batch = instruction.integers(f"{side}_batch_dims", ())
        contracted = instruction.integers(f"{side}_contracting_dims", ())
        free = [d for d in range(term.symbols.ndim) if d not in (*batch, *contracted)]
        ordered = term.symbols.transpose(*batch, *free, *contracted)
        axes = tuple(range(ordered.ndim - len(contracted), ordered.ndim))
        sides.append((along(ordered, axes), len(batch)))
    (left, batches), (right, _) = sides
    left_free, right_free = left.ndim - batches, right.ndim - batches
    left = left.reshape((*left.shape, *([1] * right_free)))
    right = right.reshape((*right.shape[:batches], *([1] * left_free), *right.shape[batches:]))
    types = [o.element_type.value for o in instruction.operands]
    said = [v for k, v in sorted(instruction.attributes.items()) if k in ("operand_precision", "algorithm")]
    key = key_of("dot", instruction.element_type.value, *types, *said)
    return combined(key, *np.broadcast_arrays(left, right))


def _clamped(start: Term, limit: int) -> Term:
    """Where slices really start, of each index."""
    if start.clamped is not None and start.clamped[1] <= 0 and start.clamped[2] >= limit:
        start = start.clamped[0]
    low, high = (min(max(int(end), 0), limit) for end in (start.bounds.low, start.bounds.high))
    if low == high:
        value = np.full(start.symbols.shape, low)
        return Term(of_values(value), of_integers(low, high), value)
    if start.bounds.within(0, limit):
        return start
    return Term(combined(key_of("start", limit), start.symbols), of_integers(low, high))


def _as_words(shape: Shape) -> Shape:
    assert isinstance(shape, ArrayShape)
    return replace(shape, element_type=ElementType.U64)
