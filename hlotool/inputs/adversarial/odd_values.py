"""Values at which arithmetic and indexing go wrong: outside domains, out of range, of extreme magnitude.

Each function makes a `Chooser` (see `corners`). Outside of domains: a logarithm, a root, a quotient or a
shift of such numbers is defined, and a program that guards itself by a `where` must take the same way on
both sides. Positions lie just beyond an end, far off, or anywhere; XLA clamps or skips them; leaves that
are no positions have none. Magnitudes: near 0, close together, about to overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.facts.demands import InRange
from hlotool.facts.ranges import Interval
from hlotool.inputs.adversarial.corners import Rng, allows, any_integers, cast, kept
from hlotool.inputs.adversarial.sets import Chooser, Leaf
from hlotool.ir.arrays import Array

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


#: Decades of floats in `near_zero`: exp - 1 has half of the digits of expm1 there, or none.
SMALL: Final = (-7.0, -4.0)
#: And beside an epsilon such as 1e-8.
TINY: Final = (-14.0, -9.0)
#: Decades of what `exponents` are beyond the largest: close to it a cosine brings the product back.
_BEYOND_EXP: Final = (-2.0, 1.2)
#: Decades of floats in `huge`.
_HUGE: Final = (10.0, 20.0)
#: In `close_together`, whose numbers are off by 1: a millionth of what squares of f32 hold.
_MEAN: Final = 1000.0
#: Share of zeros in `both_zeros`.
_ZEROS_SHARE: Final = 0.8


def near_zero(rng: Rng, decades: tuple[float, float] = SMALL) -> Chooser:
    """Floats so small that 1 + x loses most of them, as `expm1` and `log1p` do not."""
    return _floats(lambda plain: _signs(rng, plain) * 10 ** rng.uniform(*decades, plain.shape))


def close_together(rng: Rng) -> Chooser:
    """Floats that differ in their last digits: a variance is what their mean leaves of them."""
    return _floats(lambda plain: _MEAN + rng.standard_normal(plain.shape))


def exponents(rng: Rng) -> Chooser:
    """Floats whose exponential overflows, and that of their half does not; both signs."""

    def drawn(plain: Array) -> Array:
        info: Any = ml_dtypes.finfo(plain.dtype)  # type: ignore[no-untyped-call]
        beyond = 10 ** rng.uniform(*_BEYOND_EXP, plain.shape)
        return (math.log(float(info.max)) + beyond) * _signs(rng, plain)

    return _floats(drawn)


def both_zeros(rng: Rng) -> Chooser:
    """0 and -0, and few other numbers: a sort or a maximum of them keeps one or the other, a divisor makes an
    infinity of either sign.
    """

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or not leaf.element_type.is_floating:
            return None
        zeros = np.where(rng.random(leaf.plain.shape) < 0.5, 0.0, -0.0)
        is_hit = rng.random(leaf.plain.shape) < _ZEROS_SHARE
        return np.where(is_hit, cast(leaf, zeros), leaf.plain)

    return choose


def huge(rng: Rng) -> Chooser:
    """Floats that no integer of 32 bits holds, and whose squares overflow f32 or nearly do."""
    return near_zero(rng, _HUGE)


def _signs(rng: Rng, plain: Array) -> Array:
    return rng.choice([-1.0, 1.0], plain.shape)


def _floats(drawn: Callable[[Array], Array]) -> Chooser:
    """Chooses what is `drawn` for inexact leaves that need no order, given their plain values."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or not leaf.element_type.is_inexact:
            return None
        return kept(leaf, drawn(leaf.plain))

    return choose
