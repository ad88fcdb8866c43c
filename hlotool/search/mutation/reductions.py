"""Reductions of one array, and what is known beside their results of what they were reduced from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hlotool.analysis.machine_range import MachineRange, rounded
from hlotool.analysis.value_numbers import reducing_opcode
from hlotool.ir.module import Instruction
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.search.mutation import reducers
from hlotool.search.mutation.hashing import Symbols, along, combined, key_of, set_along
from hlotool.search.mutation.terms import Term

#: Elements that are looked up one by one among those of which others are the largest.
_MOST_COMPARED: Final = 4096
#: How far a quotient may be off, in units in the last place: further than any division is.
_ULPS: Final = 4.0


class Reductions:
    """Of which numbers each result of a program's reductions is the largest, or the sum."""

    def __init__(self) -> None:
        self._maxima: dict[int, frozenset[int]] = {}
        self._sums: dict[int, frozenset[int]] = {}

    def symbols(self, instruction: Instruction, operands: Sequence[Term], meaning: Symbols) -> Symbols:
        """The symbols of a `reduce`.

        Args:
            instruction: the operation.
            operands: the array and the initial value.
            meaning: the symbol of the reducer.
        """
        key = key_of("reduce", instruction.shape, meaning)
        # The largest of several numbers is the same, however often each is there, and in which order;
        # so are the bits that all or some of them have.
        opcode = reducers.combining_opcode(instruction)
        together = set_along if opcode in opcodes_with(Trait.IDEMPOTENT) else along
        axes = instruction.integers("dimensions")
        found = combined(key, together(operands[0].symbols, axes), operands[1].symbols)
        if opcode == "maximum":
            _note(found, operands[0].symbols, axes, self._maxima)
        is_sum = reducing_opcode(next(instruction.called)) == "add" and instruction.element_type.is_floating
        if is_sum and operands[0].bounds.low >= 0 and operands[1].bounds.low >= 0:
            _note(found, operands[0].symbols, axes, self._sums)
        return found

    def bounded(
        self, instruction: Instruction, operands: Sequence[Term], bounds: MachineRange
    ) -> MachineRange:
        """The bounds of an operation on numbers and on what these were reduced to, as in a softmax."""
        if instruction.opcode == "subtract" and _is_one_of(operands, self._maxima):
            return replace(bounds, high=min(bounds.high, 0.0))
        if instruction.opcode == "divide" and _is_one_of(operands, self._sums):
            # No sum of numbers without signs, however rounded, is less than one of them.
            most = rounded(0, 1, instruction.element_type, _ULPS)[1]
            return bounds.intersection(replace(bounds, low=0.0, high=most))
        return bounds


def _note(results: Symbols, values: Symbols, axes: tuple[int, ...], into: dict[int, frozenset[int]]) -> None:
    """Remember of which numbers each result of a reduction is the largest, or the sum."""
    if values.size > _MOST_COMPARED:
        return
    kept = [d for d in range(values.ndim) if d not in axes]
    rows = values.transpose(*kept, *axes).reshape(results.size, -1)
    for one, row in zip(results.reshape(-1), rows):
        into[int(one)] = frozenset(map(int, row))


def _is_one_of(operands: Sequence[Term], known: Mapping[int, frozenset[int]]) -> bool:
    """Whether each number is one of those that its counterpart was reduced from."""
    values, results = operands
    if not known or values.symbols.size > _MOST_COMPARED:
        return False
    pairs = np.broadcast_arrays(values.symbols, results.symbols)
    one_by_one = zip(*(pair.reshape(-1).tolist() for pair in pairs))
    return all(value in known.get(result, ()) for value, result in one_by_one)
