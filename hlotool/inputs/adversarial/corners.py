"""Corner values: arrays of what programs go wrong at, inside of what their uses ask for, or on purpose
outside.

Each function is a `Chooser`, or makes one: new values for one leaf, None where it has none to offer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
import numpy.typing as npt

from hlotool.facts.ranges import Interval
from hlotool.inputs.adversarial.sets import Chooser, Leaf
from hlotool.ir.arrays import Array, dtype_of, integer_limits
from hlotool.ir.types import ElementType

Rng = np.random.Generator

#: Few enough values that comparisons of two arrays meet ties, and both signs of them.
_FLOATS: Final = (-1.0, 0.0, 1.0, 2.0, 0.5)
_INTEGERS: Final = (0, 1, -1, 2, 3)
#: Different values in an array of ties.
_DIFFERENT: Final = 3
#: The largest number in `whole`: small enough that two draws are often alike.
_WHOLE: Final = 3
#: What the numbers in `coincident` are multiples of: floats hold them, their sums and products exactly.
_UNITS: Final = (1.0, 1.0, 1.0, 0.5, 2.0)
#: Shares of further zeros in `coincident`: sums of long rows of mostly zeros are small numbers again.
_ZEROS: Final = (0.0, 0.0, 0.5, 0.85)
#: Of an array, and again of its elements: as multiples of the size of `comparable`, which few arrays share.
_COMPARABLE: Final = (0.6, 1.7)
#: Decades of floats in `wide`: far apart, and their products still finite in f32.
_DECADES: Final = 4.0
#: Share of the elements of an array that get a value such as NaN, as a rule.
_SHARE: Final = 0.1


def ties(rng: Rng, constants: Sequence[float] = ()) -> Chooser:
    """A few values over and over, those of the program's `constants` among them."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.element_type is ElementType.PRED or leaf.needs_order:
            return None
        usual = _INTEGERS if leaf.element_type.is_integer else _FLOATS
        allowed = [v for v in (*constants, *usual) if _holds(leaf, v)]
        if len(allowed) < 2:
            return _few_of(leaf, rng)
        some = rng.choice(allowed, min(len(allowed), _DIFFERENT), replace=False)
        return cast(leaf, rng.choice(some, leaf.plain.shape))

    return choose


def whole(rng: Rng) -> Chooser:
    """Small integers, in floats, too: sums, differences and products of them meet ties that are exact."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type is ElementType.PRED:
            return None
        return kept(leaf, rng.integers(-_WHOLE, _WHOLE, leaf.plain.shape, endpoint=True))

    return choose


def coincident(rng: Rng, constants: Sequence[float] = ()) -> Chooser:
    """The same very few numbers in every array, so that sums, products and maxima of them coincide.

    A chooser draws the numbers once, and for each array whether its elements are all alike. Now and then one
    of the program's `constants` is among them.
    """
    reach = int(rng.integers(1, _WHOLE, endpoint=True))
    numbers = rng.choice(_UNITS) * np.arange(-reach if rng.random() < 0.5 else 0, reach + 1)
    if constants and rng.random() < 0.5:
        numbers = np.append(numbers, rng.choice(constants))
    zeros = rng.choice(_ZEROS)

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type is ElementType.PRED:
            return None
        shape = leaf.plain.shape
        # Where 0 is not allowed, say, the others take its place: what is left as it was is no such number.
        allowed = [n for n in numbers if _holds(leaf, float(n))] or numbers
        if rng.random() < 0.25:
            return kept(leaf, np.full(shape, rng.choice(allowed)))
        further = zeros if _holds(leaf, 0.0) else 0.0
        return kept(leaf, np.where(rng.random(shape) < further, 0.0, rng.choice(allowed, shape)))

    return choose


def constant(value: float, of_integers: bool = True) -> Chooser:
    """One value in all elements: `value`, or what is allowed and closest to it; integers may stay."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type.is_complex:
            return None
        if not of_integers and not leaf.element_type.is_floating:
            return None
        if leaf.element_type is ElementType.PRED:
            return np.full(leaf.plain.shape, value > 0)
        bounds = leaf.bounds
        nearest = min(max(value, bounds.low), bounds.high)
        if not math.isfinite(nearest) or not _holds(leaf, nearest):
            return None
        return cast(leaf, np.full(leaf.plain.shape, nearest))

    return choose


def ascending(leaf: Leaf) -> Array | None:
    """The plain values in order along every row, so that the last is the largest."""
    if leaf.plain.ndim == 0 or leaf.element_type.is_complex or leaf.needs_order:
        return None
    if leaf.element_type is ElementType.PRED or len(leaf.constraint.intervals) > 1:
        return None
    order = np.argsort(leaf.plain.astype(np.float64), axis=-1, kind="stable")
    return np.take_along_axis(leaf.plain, order, axis=-1)


def descending(leaf: Leaf) -> Array | None:
    """The plain values in falling order."""
    rising = ascending(leaf)
    return None if rising is None else np.ascontiguousarray(rising[..., ::-1])


def wide(rng: Rng) -> Chooser:
    """Numbers of all magnitudes and both signs, as far as they are allowed."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type is ElementType.PRED:
            return None
        if leaf.element_type.is_integer:
            return any_integers(leaf, rng)
        decades = rng.uniform(-_DECADES, _DECADES, leaf.plain.shape)
        return kept(leaf, rng.choice([-1.0, 1.0], leaf.plain.shape) * 10**decades)

    return choose


def one_sided(rng: Rng, sign: int) -> Chooser:
    """Numbers of one sign, small ones and some tens."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type is ElementType.PRED:
            return None
        if leaf.element_type.is_integer:
            return kept(leaf, sign * rng.integers(1, 30, leaf.plain.shape))
        return kept(leaf, sign * 10 ** rng.uniform(-1, 1.5, leaf.plain.shape))

    return choose


def comparable(rng: Rng, size: float, of_integers: bool) -> Chooser:
    """Numbers of one sign and of about one size in all arrays, so that each may be larger than any other.

    Where one array alone is negative, or large, a limit that is not is always on the other side of it.
    Integers change only where `of_integers` says so: counts and positions are seldom negative.
    """

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type is ElementType.PRED:
            return None
        if leaf.element_type.is_integer and not of_integers:
            return None
        drawn = size * rng.uniform(*_COMPARABLE) * rng.uniform(*_COMPARABLE, leaf.plain.shape)
        return kept(leaf, np.rint(drawn) if leaf.element_type.is_integer else drawn)

    return choose


def peak(place: int) -> Chooser:
    """The plain values with the largest one at another place of every row."""

    def choose(leaf: Leaf) -> Array | None:
        is_number = leaf.element_type is not ElementType.PRED and not leaf.element_type.is_complex
        if not is_number or not leaf.plain.ndim or leaf.needs_order or leaf.plain.shape[-1] < 2:
            return None
        new = np.array(leaf.plain)
        row = (np.arange(new.size // new.shape[-1]) + place) % new.shape[-1]
        beyond = new.astype(np.float64).max() + 1
        flat = new.reshape(-1, new.shape[-1]).astype(np.float64)
        flat[np.arange(len(row)), row] = beyond
        return kept(leaf, flat.reshape(new.shape))

    return choose


def large(rng: Rng) -> Chooser:
    """Floats beyond what f16 holds, and integers of most bits, alternating in sign."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type is ElementType.PRED:
            return None
        signs = rng.choice([-1.0, 1.0], leaf.plain.shape)
        if leaf.element_type.is_integer:
            low, high = integer_limits(leaf.element_type)
            reach = min(high, 2**62) // 3
            drawn = rng.integers(reach // 2, reach, leaf.plain.shape, endpoint=True)
            return kept(leaf, np.where((signs < 0) & (low < 0), -drawn, drawn))
        return kept(leaf, signs * 10 ** rng.uniform(5, 6, leaf.plain.shape))

    return choose


def signed(rng: Rng) -> Chooser:
    """Small integers of both signs, and floats far enough apart to have whole parts of both signs."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type is ElementType.PRED:
            return None
        if leaf.element_type.is_integer:
            low, high = integer_limits(leaf.element_type)
            values = rng.integers(max(low, -100), min(high, 100), leaf.plain.shape, endpoint=True)
            return kept(leaf, values)
        return kept(leaf, rng.uniform(-20, 20, leaf.plain.shape))

    return choose


def special(rng: Rng, value: float, share: float = _SHARE) -> Chooser:
    """`value` (NaN, an infinity, -0) in some elements of a float array, in some parts of complex numbers."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or not (leaf.element_type.is_floating or leaf.element_type.is_complex):
            return None
        if leaf.element_type.is_complex:
            parts = np.array(leaf.plain).reshape(-1)  # a scalar has no parts to look at
            flat = parts.view(parts.real.dtype)
            is_hit = rng.random(flat.shape) < share
            is_hit[int(rng.integers(is_hit.size))] = True
            flat[is_hit] = value
            return parts.reshape(leaf.plain.shape)
        dtype = leaf.plain.dtype
        held = np.asarray(value).astype(dtype)
        if not np.isfinite(value) and np.isfinite(held.astype(np.float64)):
            return None
        # A scalar has no elements to assign to, and what is drawn for it is no array.
        mask = np.asarray(rng.random(leaf.plain.shape) < share).reshape(-1)
        mask[int(rng.integers(mask.size))] = True
        result = np.array(leaf.plain).reshape(-1)
        result[mask] = held
        return result.reshape(leaf.plain.shape)

    return choose


def extreme(rng: Rng) -> Chooser:
    """The largest and smallest numbers of the type, of parts of complex ones, denormals among them."""

    def choose(leaf: Leaf) -> Array | None:
        if leaf.needs_order or leaf.element_type is ElementType.PRED:
            return None
        if leaf.element_type.is_integer:
            low, high = integer_limits(leaf.element_type)
            ends: list[Any] = [low, high, low + 1, high - 1, 0, 1]
            values = np.array([v for v in ends if low <= v <= high], leaf.plain.dtype)
        else:
            info: Any = ml_dtypes.finfo(leaf.plain.dtype)  # type: ignore[no-untyped-call]
            values = np.array(
                [float(info.max), -float(info.max), float(info.tiny), float(info.smallest_subnormal), 1.0]
            ).astype(leaf.plain.real.dtype)
        # Every one of them, in an array that has room for them.
        order = np.resize(rng.permutation(len(values)), leaf.plain.size)
        return kept(leaf, values[order].reshape(leaf.plain.shape))

    return choose


def only(leaf: Leaf, choose: Chooser) -> Chooser:
    """The same for one leaf alone."""
    return lambda other: choose(other) if other is leaf else None


def any_integers(leaf: Leaf, rng: Rng) -> Array | None:
    """As many integers of few bits as of many."""
    low, high = integer_limits(leaf.element_type)
    # All bits of the type: sums of two such numbers wrap around.
    bits = rng.integers(
        1, leaf.element_type.bits - leaf.element_type.is_signed, leaf.plain.shape, endpoint=True
    )
    bits = np.minimum(bits, 62)
    drawn = rng.integers(0, 2**62, leaf.plain.shape) >> (62 - bits)
    if leaf.element_type.is_signed:
        drawn = np.where(rng.random(leaf.plain.shape) < 0.5, drawn, ~drawn)
    return kept(leaf, np.clip(drawn, low, min(high, 2**62)))


def kept(leaf: Leaf, values: npt.NDArray[Any]) -> Array | None:
    """The values that are allowed, the plain ones elsewhere; None where none is."""
    if leaf.element_type.is_complex and not np.iscomplexobj(values):
        # Each part is one of the numbers, in turn: ties of real and imaginary parts among them.
        values = values + 1j * np.roll(values, 1) if np.ndim(values) else values * (1 + 1j)
    held = cast(leaf, values)
    if leaf.element_type.is_complex:
        return held
    numbers = held.astype(np.float64)
    good = np.isfinite(numbers) if not leaf.element_type.is_integer else np.ones(held.shape, bool)
    for interval, where in _places(leaf) if leaf.constraint.is_bounded else ():
        inside = (numbers >= interval.low) & (numbers <= interval.high)
        if interval.avoid is not None:
            inside &= numbers != interval.avoid
        good &= inside | ~where
    if good.all():
        return held
    return np.where(good, held, leaf.plain) if good.any() else None


def _places(leaf: Leaf) -> list[tuple[Interval, npt.NDArray[np.bool_]]]:
    """Every interval with the elements that it is about."""
    asked = leaf.constraint
    if asked.axis is None or len(asked.intervals) == 1:
        return [(asked.intervals[0], np.ones(leaf.plain.shape, bool))]
    positions = np.indices(leaf.plain.shape)[asked.axis]
    return [(interval, positions == n) for n, interval in enumerate(asked.intervals)]


def _few_of(leaf: Leaf, rng: Rng) -> Array | None:
    """The plain values of few places, everywhere."""
    if leaf.plain.ndim == 0 or len(leaf.constraint.intervals) > 1:
        return None
    flat = leaf.plain.reshape(-1)
    some = rng.integers(0, flat.size, _DIFFERENT - 1)
    return np.asarray(flat[rng.choice(some, leaf.plain.shape)])


def _holds(leaf: Leaf, value: float) -> bool:
    return allows(leaf, value, leaf.bounds)


def allows(leaf: Leaf, value: float, interval: Interval) -> bool:
    """Whether a leaf's type holds a number, and an interval does."""
    if leaf.element_type.is_integer:
        low, high = integer_limits(leaf.element_type)
        if not low <= value <= high or value != int(value):
            return False
    return interval.low <= value <= interval.high and value != interval.avoid


def cast(leaf: Leaf, values: npt.NDArray[Any]) -> Array:
    """Values in the type of a leaf."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype_of(leaf.element_type))
