"""Floats of sizes at which arithmetic shows what it is made of: near 0, close together, about to overflow.

Each function makes a `Chooser`; see `corners`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from hlotool.directed.corners import Rng, cast, kept
from hlotool.directed.leaves import Chooser, Leaf
from hlotool.ir.dtypes import Array

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
