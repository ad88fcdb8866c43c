"""What a program returns, as terms, in comparison with another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlotool.ir.module import Instruction, Module
from hlotool.search.mutation.hashing import Symbols
from hlotool.search.mutation.split import Split, settled
from hlotool.search.mutation.symbols import Reader
from hlotool.search.mutation.terms import Law, Term, flat


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a program returns, as terms.

    Attributes:
        results: the symbols of all arrays that it returns.
        loops: a symbol for each loop of which it is not known that it ends.
    """

    results: list[Symbols]
    loops: frozenset[int]

    def covers(self, other: Reading) -> bool:
        """Whether another program returns the same, and ends wherever this one does."""
        return all(map(np.array_equal, self.results, other.results)) and other.loops <= self.loops


def read(module: Module, laws: Sequence[Law], split: Split | None = None, unrolled: bool = False) -> Reading:
    """Reads a program as terms.

    Args:
        module: the program.
        laws: tried on every operation, in this order.
        split: cases that are told apart wherever elements stay at their places.
        unrolled: whether loops are followed iteration by iteration, as far as their conditions are known.

    Raises:
        Unsupported: it is too large.
    """
    reader = Reader(module, laws, split, unrolled)
    results = flat(reader.result(module.entry, reader.fresh(module.entry)))
    return Reading([settled(term, split).symbols for term in results], frozenset(reader.loops))


def result_symbols(module: Module, laws: Sequence[Law], split: Split | None = None) -> list[Symbols]:
    """The symbols of all arrays that a program returns; see `read`."""
    return read(module, laws, split).results


def compared_at(module: Module, laws: Sequence[Law], comparison: Instruction) -> list[tuple[Term, Term]]:
    """What a comparison compares, each time that it is read; see `read`."""
    reader = Reader(module, laws)
    reader.watched = comparison
    reader.result(module.entry, reader.fresh(module.entry))
    return reader.seen
