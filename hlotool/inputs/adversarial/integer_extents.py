"""Integers at the ends of widths, signs and limits, and loops that run as often as an argument says.

The integers are -1, 0, 2^7, 2^8, 2^15, … and the program's own constants. A counter that lost its upper
bits, its sign or what lies beyond a limit counts right as long as it is small. So loops go round never,
once, and beyond what a narrow counter holds: one that is kept in 8 or 16 bits, or loses the carry into its
upper half, is right in every short loop, and one that stops where it meets its limit, instead of beyond it,
ends as long as that is not negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.facts.ranges import ANY, Interval
from hlotool.facts.work import of_lowering
from hlotool.inputs.adversarial.corners import allows
from hlotool.inputs.adversarial.sets import (
    OUT_OF_RANGE,
    InputSet,
    Leaf,
    leaves_of,
    scalar_constants,
    with_chosen,
)
from hlotool.inputs.demand_rules import TRIP_COUNT
from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape
from hlotool.system.resources import UNITS_PER_SECOND, TooMuchWork, spend, work_limit

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


#: Work of one run at most, in units: 65,536 iterations of some twenty small instructions.
_LONGEST: Final = 4 * UNITS_PER_SECOND
#: And of one that may never end: some hundred iterations.
_SHORT: Final = UNITS_PER_SECOND // 100
#: Narrower counters cannot count so far.
_LEAST_BITS: Final = 32
#: Limits of loops, those first that are least work: none, and more than counters of 7 and 8 bits hold.
_COUNTS: Final = (-1, 0, 1, -3, 130, 256)
#: Of those that are not positive the one for what a loop works on until it is done, and may for ever.
_NEGATIVE: Final = -3
#: And what a loop works on is a multiple of a number in one more set: f32 does not hold them.
_BEYOND_F32: Final = (1 << 24) + 5
_FACTORS: Final = (7, -3, 5)
#: Constants of the program up to this are counted up to, and beyond by one.
_LARGEST_CONSTANT: Final = 300


def counts(module: Module, plain: Sequence[Value]) -> Iterator[InputSet]:
    """Sets in which an argument that says how often a loop runs is negative, 0, 1, larger than what a byte
    holds, or beside a constant of the program; among them one with large numbers for what loops work on.

    Args:
        module: a program for one device.
        plain: its plain arguments.
    """
    leaves = leaves_of(module, plain)
    counting = [leaf for leaf in leaves if _counts(leaf)]
    if not counting:
        return
    constants = {int(c) for c in scalar_constants(module) if c == int(c) and 1 < c <= _LARGEST_CONSTANT}
    beside = sorted({c + step for c in constants for step in (-1, 0, 1)} - set(_COUNTS))
    yield from _single(module, plain, leaves, _COUNTS)
    if any(leaf.bounds.low != 0 for leaf in counting):
        yield from _large(module, plain, leaves)
    yield from _single(module, plain, leaves, beside)


def long_loops(module: Module, plain: Sequence[Value]) -> Iterator[InputSet]:
    """A set for each argument that says how often a loop runs, as far as a run is not too much work.

    Args:
        module: a program for one device.
        plain: its plain arguments.
    """
    leaves = leaves_of(module, plain)
    for leaf in leaves:
        if not _counts(leaf) or leaf.element_type.bits < _LEAST_BITS:
            continue

        def choose(other: Leaf, leaf: Leaf = leaf) -> Array | None:
            return _beyond_half(leaf) if other is leaf else None

        values, changed = with_chosen(module, plain, leaves, choose)
        if changed and _is_moderate(module, values, _LONGEST):
            odd = (OUT_OF_RANGE,) if leaf.is_index else ()
            yield InputSet(f"long loop by {leaf.name}", values, odd, is_hard=True)


def _single(
    module: Module, plain: Sequence[Value], leaves: Sequence[Leaf], numbers: Sequence[int]
) -> Iterator[InputSet]:
    """A set for each number in each argument that a loop runs by."""
    for number in numbers:
        for leaf in filter(_counts, leaves):
            # Of what a loop works on, or counts by, wishes say that it is positive.
            suits = number > 0 or number == _NEGATIVE or leaf.bounds.low <= 0
            if not suits or not allows(leaf, number, ANY):
                continue
            value = np.full(leaf.plain.shape, number, dtype_of(leaf.element_type))

            def choose(other: Leaf, leaf: Leaf = leaf, value: Array = value) -> Array | None:
                return value if other is leaf else None

            values, changed = with_chosen(module, plain, leaves, choose)
            may_not_end = number <= 0 < leaf.bounds.low
            if may_not_end and not _is_moderate(module, values, _SHORT):
                continue
            if changed and not np.array_equal(value, leaf.plain):
                odd = (OUT_OF_RANGE,) if leaf.is_index and number < 0 else ()
                yield InputSet(f"{number} in {leaf.name}", values, odd, is_hard=True)


def _large(module: Module, plain: Sequence[Value], leaves: Sequence[Leaf]) -> Iterator[InputSet]:
    """One set in which all integers are large, share a factor, and take turns in sign."""
    factors = iter(_FACTORS)

    def choose(leaf: Leaf) -> Array | None:
        is_limit = _counts(leaf) and leaf.bounds.low == 0
        if leaf.is_index or leaf.needs_order or is_limit or not leaf.element_type.is_integer:
            return None
        number = next(factors, 1) * _BEYOND_F32
        return np.full(leaf.plain.shape, number, leaf.plain.dtype) if allows(leaf, number, ANY) else None

    values, changed = with_chosen(module, plain, leaves, choose)
    if changed and _is_moderate(module, values, _SHORT):
        yield InputSet("large numbers in loops", values, is_hard=True)


def _counts(leaf: Leaf) -> bool:
    is_count = any(purpose.startswith(TRIP_COUNT) for purpose in leaf.constraint.purposes)
    return is_count and leaf.is_free and leaf.element_type.is_integer and leaf.plain.size == 1


def _beyond_half(leaf: Leaf) -> Array | None:
    """As far beyond 2^16 as short loops are long; None where loops of this argument run backwards."""
    high = leaf.bounds.high
    if not 0 < high < 1 << 16:
        return None
    return np.full(leaf.plain.shape, int(high) + (1 << 16), dtype_of(leaf.element_type))


def _is_moderate(module: Module, values: Sequence[Value], most: float) -> bool:
    """Whether a run of the program is no more work than it may be; loops in loops seldom are."""
    spend(of_lowering(module))
    try:
        with work_limit(most):
            NumpyBackend().compile(module).run(values)
    except TooMuchWork:
        spend(0)  # raises again where somebody else's limit is reached
        return False
    except HlotoolError:
        return False
    return True
