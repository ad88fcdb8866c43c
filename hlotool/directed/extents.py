"""Integers where their widths, their signs and the program's own constants end: -1, 0, 2^7, 2^8, 2^15, ….

A counter that lost its upper bits, its sign or what lies beyond a limit counts right as long as it is small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hlotool.analysis.interval import Interval
from hlotool.backends.base import Value
from hlotool.directed.leaves import Leaf, leaves_of, with_chosen
from hlotool.directed.sets import OUT_OF_RANGE, InputSet
from hlotool.ir.dtypes import Array, dtype_of, integer_limits
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape
from hlotool.values.demand_rules import TRIP_COUNT

#: What no type or mask cuts off, and what one more bit is needed for; the sizes of counters come first.
_EXTENTS: Final = (0, -1, 1, 2, 127, 128, 255, 256, -128, -129, 1000, 32767, 32768, 65535, 65536)
_WIDE: Final = (1 << 20, 1 << 24, (1 << 31) - 1, -(1 << 31), 1 << 32, 1 << 40)
#: Constants of a program that are looked at: so many of the smallest.
_CONSTANTS: Final = 8
#: Sets of arrays, in which such numbers are mixed.
_MIXED: Final = 3
#: The golden ratio in 32 bits: its multiples visit the numbers in turn, and differ from array to array.
_STEP: Final = 0x9E3779B1


def extent_sets(
    modules: Sequence[Module], plain: Sequence[Value], most: int | None = None
) -> Iterator[InputSet]:
    """A set for each such number in each scalar integer, small ones first, and some for the arrays.

    What a program requires is kept: divisors, indices that are declared sorted; but loops may take so long
    that only a limit of work ends them.

    Args:
        modules: for one device each, with the same parameters; the first one's uses decide what is required.
        plain: the plain arguments.
        most: the largest size of a number; None for any.
    """
    module = modules[0]
    numbers = [number for number in _numbers(modules) if most is None or abs(number) <= most]
    leaves = [leaf for leaf in leaves_of(module, plain) if _is_open(leaf)]
    arrays = [leaf for leaf in leaves if leaf.plain.size > 1]
    for turn in range(_MIXED if arrays else 0):
        chosen = {id(leaf): _mixed(leaf, numbers, turn * len(arrays) + n) for n, leaf in enumerate(arrays)}
        yield from _set(f"extents {turn + 1}", module, plain, chosen, arrays)
    for number in numbers:
        for leaf in leaves:
            if leaf.plain.size == 1 and _fitting(leaf, [number]):
                array = np.full(leaf.plain.shape, number, dtype_of(leaf.element_type))
                yield from _set(f"{number} in {leaf.name}", module, plain, {id(leaf): array}, [leaf])


def _set(
    name: str,
    module: Module,
    plain: Sequence[Value],
    chosen: dict[int, Array | None],
    leaves: Sequence[Leaf],
) -> Iterator[InputSet]:
    values, changed = with_chosen(module, plain, leaves, lambda leaf: chosen.get(id(leaf)))
    if changed:
        is_odd = any(leaf.is_index for leaf in leaves)
        yield InputSet(name, values, (OUT_OF_RANGE,) if is_odd else ())


def _numbers(modules: Sequence[Module]) -> list[int]:
    """All numbers in question, the smallest first: where they count, they are the least work."""
    constants = sorted({abs(c) for module in modules for c in _constants(module)})[:_CONSTANTS]
    beside = {s * c + d for c in constants for s in (1, -1) for d in (-1, 0, 1)}
    return sorted({*_EXTENTS, *_WIDE, *beside}, key=lambda n: (abs(n), n))


def _constants(module: Module) -> Iterator[int]:
    for instruction in module.instructions():
        literal, shape = instruction.literal, instruction.shape
        if literal is None or literal.has_elided or not isinstance(shape, ArrayShape) or shape.size != 1:
            continue
        if shape.element_type.is_integer:
            yield int(literal.array.item())


def _is_open(leaf: Leaf) -> bool:
    return leaf.element_type.is_integer and leaf.is_free and not leaf.needs_order


def _fitting(leaf: Leaf, numbers: Sequence[int]) -> list[int]:
    """Those that the type holds and the program allows; of counts of steps all, whatever work they are."""
    low, high = integer_limits(leaf.element_type)
    counts = any(purpose.startswith(TRIP_COUNT) for purpose in leaf.required.purposes)
    required = Interval(low, high) if counts else leaf.as_required.bounds
    return [
        n for n in numbers if low <= n <= high and required.low <= n <= required.high and n != required.avoid
    ]


def _mixed(leaf: Leaf, numbers: Sequence[int], turn: int) -> Array | None:
    """Every second element is one of the numbers."""
    fitting = _fitting(leaf, numbers)
    if not fitting:
        return None
    flat = np.array(leaf.plain).reshape(-1)
    places = np.arange(turn % 2, flat.size, 2)
    order = (np.arange(places.size, dtype=np.uint64) + np.uint64(turn * 7)) * np.uint64(_STEP)
    picked = (order >> np.uint64(7)) % np.uint64(len(fitting))
    flat[places] = np.array(fitting, flat.dtype)[picked.astype(np.int64)]
    return flat.reshape(leaf.plain.shape)
