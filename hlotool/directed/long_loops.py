"""Loops that count beyond half the bits of their counter, where an argument says how long they are.

A counter that is kept in 16 bits, or loses the carry into its upper half, is right in every short loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from hlotool.analysis.work import of_reading
from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.directed.leaves import Leaf, leaves_of, with_chosen
from hlotool.directed.sets import OUT_OF_RANGE, InputSet
from hlotool.errors import HlotoolError
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Module
from hlotool.values.demand_rules import TRIP_COUNT
from hlotool.workers.work_limit import UNITS_PER_SECOND, TooMuchWork, spend, work_limit

#: Work of one run at most, in units: 65,536 iterations of some twenty small instructions.
_LONGEST: Final = 4 * UNITS_PER_SECOND
#: Narrower counters cannot count so far.
_LEAST_BITS: Final = 32


def long_loops(module: Module, plain: Sequence[Value]) -> Iterator[InputSet]:
    """A set for each argument that says how often a loop runs, as far as a run is not too much work.

    Args:
        module: a program for one device.
        plain: its plain arguments.
    """
    leaves = leaves_of(module, plain)
    for leaf in leaves:
        if not _counts(leaf):
            continue

        def choose(other: Leaf, leaf: Leaf = leaf) -> Array | None:
            return _beyond_half(leaf) if other is leaf else None

        values, changed = with_chosen(module, plain, leaves, choose)
        if changed and _is_moderate(module, values):
            odd = (OUT_OF_RANGE,) if leaf.is_index else ()
            yield InputSet(f"long loop by {leaf.name}", values, odd, is_hard=True)


def _counts(leaf: Leaf) -> bool:
    is_count = any(purpose.startswith(TRIP_COUNT) for purpose in leaf.constraint.purposes)
    is_wide = leaf.element_type.is_integer and leaf.element_type.bits >= _LEAST_BITS
    return is_count and is_wide and leaf.plain.size == 1


def _beyond_half(leaf: Leaf) -> Array | None:
    """As far beyond 2^16 as short loops are long; None where loops of this argument run backwards."""
    high = leaf.bounds.high
    if not 0 < high < 1 << 16:
        return None
    return np.full(leaf.plain.shape, int(high) + (1 << 16), dtype_of(leaf.element_type))


def _is_moderate(module: Module, values: Sequence[Value]) -> bool:
    """Whether a run of the program is as much work as it may be, or less; loops in loops seldom are."""
    spend(of_reading(module))
    try:
        with work_limit(_LONGEST):
            NumpyBackend().compile(module).run(values)
    except TooMuchWork:
        spend(0)  # raises again where somebody else's limit is reached
        return False
    except HlotoolError:
        return False
    return True
