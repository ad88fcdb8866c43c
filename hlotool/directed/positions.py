"""Positions out of range: just beyond an end, far off, or anywhere; XLA clamps or skips them.

Each function makes a `Chooser`; leaves that are no positions have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hlotool.analysis.interval import Interval
from hlotool.directed.corners import Rng, allows, any_integers, cast, kept
from hlotool.directed.leaves import Chooser, Leaf
from hlotool.ir.dtypes import Array
from hlotool.values.demands import InRange

#: Share of the positions out of range that are next to the range.
_JUST_BEYOND: Final = 0.4
#: And of those that are several lengths away.
_FAR: Final = 0.25
#: Decades of floats that no integer of 32 bits holds.
_BEYOND_S32: Final = (9.5, 12.0)


def outside(rng: Rng, above: bool) -> Chooser:
    """Positions beyond the end, or before the beginning; XLA clamps or skips them.

    Many are just beyond, where tests of the range go wrong; some are further off.
    """

    def choose(leaf: Leaf) -> Array | None:
        wanted = InRange(leaf.constraint.intervals).narrowest
        if not leaf.is_index or not wanted.is_bounded:
            return None
        if leaf.element_type.is_floating:
            return _coordinates(leaf, wanted, rng, above)
        span = int(wanted.high - wanted.low) + 2
        steps = rng.integers(1, span, leaf.plain.shape, endpoint=True)
        near = rng.random(leaf.plain.shape)
        # So far that what frameworks add to negative ones does not bring them back, or only just.
        far = steps + span * rng.integers(1, 3, leaf.plain.shape, endpoint=True)
        steps = np.where(near < _JUST_BEYOND, 1, np.where(near > 1 - _FAR, far, steps))
        beyond: npt.NDArray[Any] | None
        if leaf.needs_order and not above and rng.random() < 0.5:
            # All together stay in order, also where the length is added to what is negative.
            beyond = leaf.plain.astype(np.int64) - (span - 1)
        elif leaf.needs_order:
            beyond = _at_one_end(leaf, wanted.high + span + 1 if above else wanted.low - span - 1, above)
            if beyond is None:
                return None
        else:
            beyond = wanted.high + steps if above else wanted.low - steps
        if leaf.plain.ndim and not leaf.needs_order:
            # Some stay where they are: what others write there must survive.
            beyond = np.where(rng.random(leaf.plain.shape) < 0.5, beyond, leaf.plain)
        if not all(
            allows(leaf, int(v), InRange(leaf.required.intervals).narrowest) for v in np.ravel(beyond)[:4]
        ):
            return None
        return cast(leaf, beyond)

    return choose


def _coordinates(leaf: Leaf, wanted: Interval, rng: Rng, above: bool) -> Array | None:
    """Floats that positions are made of, with fractions: some in range, most beyond one end of it."""
    shape, span = leaf.plain.shape, wanted.high - wanted.low + 1
    # Within one of the end, where rounding down is not rounding to 0, and anywhere from the range on.
    steps = np.where(rng.random(shape) < 0.5, rng.uniform(0, 1, shape), rng.uniform(-span, span, shape))
    return kept(leaf.as_required, wanted.high + steps if above else wanted.low - steps)


def lengths_away(rng: Rng, above: bool) -> Chooser:
    """Positions more than a length beyond the end, or before the start, and less than two.

    They are out of range still where a program has added the length to what is negative, as frameworks do,
    and in range where one takes the remainder by the length, or the sign away.
    """

    def choose(leaf: Leaf) -> Array | None:
        wanted = leaf.bounds
        if not leaf.is_index or leaf.needs_order or not wanted.is_bounded:
            return None
        if leaf.element_type.is_floating:
            sizes = 10 ** rng.uniform(*_BEYOND_S32, leaf.plain.shape)
            return kept(leaf.as_required, sizes if above else -sizes)
        length = int(wanted.high - wanted.low) + 1
        steps = length + rng.integers(1, max(1, length - 1), leaf.plain.shape, endpoint=True)
        required = InRange(leaf.required.intervals).narrowest
        beyond = wanted.high + steps if above else wanted.low - steps
        return cast(leaf, beyond) if all(allows(leaf, int(v), required) for v in np.ravel(beyond)) else None

    return choose


def far_outside(above: bool, wraps: bool = False) -> Chooser:
    """Positions that are in range again where an index has but half of its bits.

    With `wraps` they are so once a program has added the length to what is negative, as frameworks do.
    """

    def choose(leaf: Leaf) -> Array | None:
        kind = leaf.element_type
        if not leaf.is_index or leaf.needs_order or not kind.is_integer or kind.bits < 16:
            return None
        step = 1 << kind.bits // 2
        beyond = leaf.plain.astype(np.int64) + (step if above else -step)
        wanted = leaf.bounds
        if wraps and wanted.is_bounded:
            beyond -= int(wanted.high - wanted.low) + 1
        required = InRange(leaf.required.intervals).narrowest
        return cast(leaf, beyond) if all(allows(leaf, int(v), required) for v in beyond.flat[:4]) else None

    return choose


def from_the_end(rng: Rng, lengths: Sequence[int]) -> Chooser:
    """Positions in range, less the length that frameworks add to a negative one: `select(i < 0, i + n, i)`.

    Args:
        rng: draws the positions.
        lengths: that the program adds to negative numbers, rising.
    """

    def choose(leaf: Leaf) -> Array | None:
        wanted = leaf.bounds
        if not leaf.is_index or leaf.needs_order or not leaf.element_type.is_integer or not wanted.is_bounded:
            return None
        length = next((n for n in lengths if n > wanted.high), None)
        if length is None:
            return None
        inside = rng.integers(int(wanted.low), int(wanted.high), leaf.plain.shape, endpoint=True)
        required = InRange(leaf.required.intervals).narrowest
        beyond = inside - length
        return cast(leaf, beyond) if all(allows(leaf, int(v), required) for v in np.ravel(beyond)) else None

    return choose


def anywhere(rng: Rng) -> Chooser:
    """Positions of as many or few bits as the type has: what is computed of them may be any number."""

    def choose(leaf: Leaf) -> Array | None:
        if not leaf.is_index or leaf.needs_order or not leaf.element_type.is_integer:
            return None
        return any_integers(leaf.as_required, rng)

    return choose


def _at_one_end(leaf: Leaf, position: float, above: bool) -> npt.NDArray[Any] | None:
    """The plain positions with the last one replaced, or the first, so that they stay in order."""
    order, axis = leaf.constraint.order, leaf.constraint.axis
    is_vector = axis is not None and leaf.plain.shape[axis] > 1
    if order is None or not order.ascending or is_vector:
        return None
    beyond = np.array(leaf.plain, np.int64)
    beyond.reshape(-1)[-1 if above else 0] = position
    return beyond
