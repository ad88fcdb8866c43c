"""Which instruction needs which, directly or not, while instructions are merged. XLA: hlo_reachability.cc."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from hlotool.ir.module import Instruction
from hlotool.ir.walk import predecessors


class Ancestors:
    """What each instruction needs, as a row of bits.

    Args:
        instructions: of a computation, operands first.
    """

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        listed = list(instructions)
        self._numbers = {instruction: n for n, instruction in enumerate(listed)}
        self._rows = np.zeros((len(listed), (len(listed) + 7) // 8), np.uint8)
        for instruction, number in self._numbers.items():
            for needed in predecessors(instruction):
                other = self._numbers[needed]
                self._rows[number] |= self._rows[other]
                self._set(number, other)

    def leads(self, source: Instruction, target: Instruction) -> bool:
        """Whether `target` needs `source`."""
        byte, bit = divmod(self._numbers[source], 8)
        return bool(self._rows[self._numbers[target], byte] >> bit & 1)

    def merge(self, first: Instruction, second: Instruction, parts: Iterable[Instruction]) -> None:
        """Both become one instruction, for which all of `parts` stand.

        Whoever needed one of the two needs what either needs.
        """
        kept, gone = self._numbers.pop(first), self._numbers.pop(second)
        needing = self._needing(kept) | self._needing(gone)
        needing[[kept, gone]] = True
        self._rows[needing] |= self._rows[kept] | self._rows[gone]
        self._rows[needing, kept // 8] |= np.uint8(1 << kept % 8)
        # The merged instruction does not need itself.
        for number in (kept, gone):
            self._rows[kept, number // 8] &= np.uint8(~(1 << number % 8) & 0xFF)
        for part in parts:
            self._numbers[part] = kept

    def _set(self, number: int, other: int) -> None:
        self._rows[number, other // 8] |= np.uint8(1 << other % 8)

    def _needing(self, number: int) -> npt.NDArray[np.bool_]:
        column: npt.NDArray[np.bool_] = (self._rows[:, number // 8] & np.uint8(1 << number % 8)) != 0
        return column
