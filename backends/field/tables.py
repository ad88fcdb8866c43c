"""Tables that a compiler computed of constants, and rounded: read as what the reference computes, by place.

An element of a table is no constant of a formula: among hundreds of numbers any number is explained by
accident. But a table of the tested program that is, element by element, what the reference computes from
constants up to roundings (int8 weights times their scales) is that table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from hlotool.backends.field.words import Words
from hlotool.ir.arrays import Array, Literal
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape

#: Elements of smaller arrays are constants of a formula.
SMALL: Final = 64
#: Larger ones are not looked at.
_LARGE: Final = 1 << 20


class Tables:
    """The tables that follow from constants in a reference, of the sizes that a tested program has.

    Args:
        reference: the program whose constants are as they were written.
        tested: the other one, if there is one.

    Attributes:
        sizes: elements of the tables that only the tested program has.
    """

    def __init__(self, reference: Module, tested: Module | None) -> None:
        own = [] if tested is None else list(_tables(tested))
        written = {literal.key for literal in _tables(reference)} if own else set()
        self.sizes = frozenset(one.array.size for one in own if one.key not in written)
        self._known: list[tuple[Array, npt.NDArray[np.float64], Words]] = []

    def note(self, values: Array, off: npt.NDArray[np.float64], words: Words) -> None:
        """Note what the reference computes from constants alone.

        Args:
            values: in its own arithmetic.
            off: by how much roundings may have moved each.
            words: what they are without rounding.
        """
        self._known.append((values, off, words))

    def find(self, values: npt.NDArray[np.float64]) -> Words | None:
        """The words of a table of the tested program; None where nothing explains it."""
        for known, off, words in self._known:
            if known.size != values.size:
                continue
            wide = known.astype(np.float64).reshape(values.shape)
            if (np.abs(wide - values) <= off.reshape(values.shape)).all():
                return words.reshape(values.shape)
        return None


def _tables(module: Module) -> Iterator[Literal]:
    for instruction in module.instructions():
        shape, literal = instruction.shape, instruction.literal
        if literal is None or not isinstance(shape, ArrayShape) or not shape.element_type.is_floating:
            continue
        if SMALL < shape.size <= _LARGE and not literal.has_elided:
            yield literal
