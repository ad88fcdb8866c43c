"""Constants with elements of their own: which of them may be cut.

A constant that both programs have is cut on both sides to the same elements. One whose elements are all equal
needs no partner. Any other was computed by a compiler from something of the full size: nobody says what it
would be of another one, and its dimensions stay; so do those of a table that a reshape may have mixed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from hlotool.analysis.constants import uniform
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.scale.rules.base import Relations, place


def freeze_literals(known: Relations, modules: Sequence[Module]) -> None:
    """Freeze the dimensions of constants that only one of the programs has."""
    tables = [dict(_tables(known, module)) for module in modules]
    shared = set.intersection(*(set(table.values()) for table in tables)) if len(modules) > 1 else set()
    # Sizes that are frozen meanwhile are made of what they were.
    mixed = known.sizes.mixed_atoms()
    for table in tables:
        for instruction, contents in table.items():
            if len(modules) > 1 and contents not in shared:
                known.freeze(instruction, f"{place(instruction)}: a table in one of the programs only")
            elif any(not mixed.isdisjoint(known.sizes.atoms(size)) for size in known.of(instruction)):
                known.freeze(instruction, f"{place(instruction)}: a table whose elements a reshape mixes")


def _tables(known: Relations, module: Module) -> Iterator[tuple[Instruction, Hashable]]:
    """Constants that are more than one value, with what does not depend on how they are arranged."""
    for instruction in module.instructions():
        literal = instruction.literal
        if literal is None or not isinstance(instruction.shape, ArrayShape) or instruction.shape.size < 2:
            continue
        if all(known.sizes.root(size).why for size in known.of(instruction)):
            continue
        if literal.elided or uniform(instruction) is None:
            yield instruction, (instruction.shape.size, None if literal.elided else _contents(literal.array))


def _contents(array: Array) -> bytes:
    """The elements in order of size, whatever width they are stored in; NaN last."""
    numbers = array.astype(np.complex128 if np.iscomplexobj(array) else np.float64).reshape(-1)
    return np.sort(numbers).tobytes()
