"""What single elements were chosen from, wherever they have been moved since.

`select(m, a, select(m, b, c))` is `select(m, a, c)`. Arrays remember their cases as long as elements stay at
their places (`assumptions`); here it is remembered of each element, by its symbol: so a loop that goes on to
read what it has written last chooses the same again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hlotool.search.mutation.hashing import Symbols
from hlotool.search.mutation.terms import Term

#: Arrays of more elements are not looked at one by one.
_MOST_ELEMENTS: Final = 256


class Choices:
    """Elements that are choices: a mask, what is taken where it holds, and what is taken where not."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int, int]] = {}

    def note(self, results: Symbols, plain: Symbols, operands: Sequence[Symbols]) -> None:
        """Remember what the elements of a choice are made of.

        Args:
            results: symbols of the result.
            plain: what they are where no law simplified the choice: no others are remembered.
            operands: symbols of the mask, of what is taken where it holds, and where not.
        """
        if results.size > _MOST_ELEMENTS:
            return
        arrays = [np.broadcast_to(part, results.shape) for part in (results, plain, *operands)]
        for result, unchanged, *parts in zip(*(array.reshape(-1).tolist() for array in arrays)):
            if result == unchanged:
                mask, holds, fails = parts
                self._known.setdefault(result, (mask, holds, fails))

    def seen_through(self, operands: Sequence[Term]) -> Sequence[Term]:
        """The operands of a select, each element as it is on its side of the mask."""
        mask, *sides = operands
        if not self._known or any(side.symbols.size > _MOST_ELEMENTS for side in sides):
            return operands
        found = [mask]
        for side, holds in zip(sides, (True, False)):
            symbols = self._read_all(side.symbols, mask.symbols, holds)
            is_same = np.array_equal(symbols, side.symbols)
            found.append(side if is_same else Term(symbols, side.bounds))
        return found

    def _read_all(self, values: Symbols, mask: Symbols, holds: bool) -> Symbols:
        dims = np.broadcast_shapes(values.shape, mask.shape)
        pairs = (np.broadcast_to(array, dims).reshape(-1).tolist() for array in (values, mask))
        found = [self._read(value, one, holds) for value, one in zip(*pairs)]
        return np.array(found, np.uint64).reshape(dims)

    def _read(self, value: int, mask: int, holds: bool) -> int:
        while (choice := self._known.get(value)) is not None and choice[0] == mask:
            value = choice[1] if holds else choice[2]
        return value
