"""Loops that go round as often as an argument says: never, once, and beyond what a narrow counter holds.

A counter that is kept in 8 or 16 bits, or loses the carry into its upper half, is right in every short loop.
And one that stops where it meets its limit, instead of beyond it, ends as long as that is not negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hlotool.analysis.interval import ANY
from hlotool.analysis.work import of_lowering
from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.directed.constants import scalar_constants
from hlotool.directed.corners import allows
from hlotool.directed.leaves import Leaf, leaves_of, with_chosen
from hlotool.directed.sets import OUT_OF_RANGE, InputSet
from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Module
from hlotool.values.demand_rules import TRIP_COUNT
from hlotool.workers.work_limit import UNITS_PER_SECOND, TooMuchWork, spend, work_limit

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
