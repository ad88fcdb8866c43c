"""Integers that may be sizes, in one of the programs only: offsets of shards, limits of expanded gathers.

An integer that both programs have means the same in both, whatever sizes become. One that a compiler put
into one of them may be a size that it counted with, or the last index of a dimension: nobody says what it
would be of another size, so the sizes that it may be stay. Where programs are for several devices, one
less than a size counts, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hlotool.analysis.constants import integer_constant
from hlotool.ir.module import Instruction, Module
from hlotool.scale.rules.base import Relations, place

#: Smaller numbers are everywhere, and sizes like them change little.
_LEAST: Final = 16


def freeze_counted(known: Relations, modules: Sequence[Module], understood: set[Instruction]) -> None:
    """Freeze sizes that integer constants of one program only are equal to, or one less than.

    Args:
        known: sizes and relations.
        modules: the programs.
        understood: constants that follow sizes.
    """
    held: list[dict[int, Instruction]] = []
    for module in modules:
        held.append({})
        for instruction in module.instructions():
            if instruction.opcode == "constant" and instruction not in understood:
                value = integer_constant(instruction)
                if value is not None and abs(value) >= _LEAST - 1:
                    held[-1].setdefault(abs(value), instruction)
    everywhere = set.intersection(*map(set, held))
    lonely = {value: found for side in held for value, found in side.items() if value not in everywhere}
    if not lonely:
        return
    # The last index as a limit says no more than the operation that it is for. A partitioner counts with it.
    is_spread = any(module.num_partitions * module.replica_count > 1 for module in modules)
    for module in modules:
        for instruction in module.instructions():
            for dims in known.dims[instruction].values():
                for size in dims:
                    found = lonely.get(size.value) or (lonely.get(size.value - 1) if is_spread else None)
                    if found is not None and size.value >= _LEAST and not known.sizes.root(size).why:
                        known.sizes.freeze(size, f"{place(found)}: may be this size, in one program only")
