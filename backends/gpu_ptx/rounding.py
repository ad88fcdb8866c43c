"""Floating-point results rounded once, in any of the four directions (PTX ISA, "Rounding Modifiers").

A result is first computed in f64 and rounded to odd: if it is not exact, its last bit is 1. What is rounded
to odd with at least two spare bits rounds further to what the exact value does (Boldo and Melquiond).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from hlotool.backends.gpu_ptx.types import Values

MODES = ("rn", "rz", "rm", "rp")


def two_sum(a: Values, b: Values) -> tuple[Values, Values]:
    """Sum and its error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def to_odd(value: Values, error: Values) -> Values:
    """f64 `value + error`, where `value` is its nearest f64, rounded to odd."""
    bits = value.view(np.int64)
    inexact = (error != 0) & np.isfinite(value) & ((bits & 1) == 0)
    if not inexact.any():
        return value
    away = (error > 0) == (value > 0)
    return np.where(inexact, bits + np.where(away, 1, -1), bits).view(np.float64)


def fma_odd(a: Values, b: Values, c: Values) -> Values:
    """`a × b + c` of numbers of at most 24 bits, as f64 rounded to odd."""
    product = a.astype(np.float64) * b.astype(np.float64)
    return to_odd(*two_sum(product, c.astype(np.float64)))


def quotient_odd(a: Values, b: Values) -> Values:
    """`a / b` of f32, as f64 rounded to odd."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    quotient = a / b
    high = (quotient.view(np.int64) & -(1 << 27)).view(np.float64)  # 26 bits: its product with 24 is exact
    rest = (a - high * b) - (quotient - high) * b
    return to_odd(quotient, np.where(np.isfinite(rest), rest * np.sign(b), 0))


def root_odd(a: Values) -> Values:
    """The square root of f32, as f64 rounded to odd."""
    a = a.astype(np.float64)
    root = np.sqrt(a)
    high = (root.view(np.int64) & -(1 << 27)).view(np.float64)
    low = root - high
    rest = ((a - high * high) - 2 * high * low) - low * low
    return to_odd(root, np.where(np.isfinite(rest), rest, 0))


_NARROW: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def narrow(odd: Values, name: str, mode: str = "rn") -> Values:
    """f64 that is exact, or rounded to odd, as the values of another type: f32 that hold f16 or bf16, or
    f32.
    """
    kind = _NARROW[name]
    if name == "bf16":
        # ml_dtypes goes by way of f32: rounded to odd there, too.
        single = odd.astype(np.float32)
        error = odd - single.astype(np.float64)
        bits = single.view(np.int32)
        inexact = (error != 0) & np.isfinite(single) & ((bits & 1) == 0)
        away = (error > 0) == (single > 0)
        nearest = (
            np.where(inexact, bits + np.where(away, 1, -1), bits)
            .astype(np.int32)
            .view(np.float32)
            .astype(kind)
        )
    else:
        nearest = odd.astype(kind)
    if mode != "rn":
        nearest = _directed(nearest, odd, mode)
    found: Values = nearest.astype(np.float32)
    return found


def _directed(nearest: Values, exact: Values, mode: str) -> Values:
    """The neighbour of `nearest` on the side of `exact` that `mode` wants."""
    wide = nearest.astype(np.float64)
    up = {"rm": False, "rp": True}.get(mode)
    goes_up = (exact < 0) if up is None else np.broadcast_to(np.bool_(up), np.shape(exact))
    wrong = np.where(goes_up, wide < exact, wide > exact) & np.isfinite(exact)
    if not wrong.any():
        return nearest
    limit = np.where(goes_up, np.inf, -np.inf).astype(nearest.dtype)
    return np.where(wrong, np.nextafter(nearest, limit), nearest)


def quotient_f64(a: Values, b: Values, mode: str) -> Values:
    """`a / b` of f64, rounded once; the directed modes one by one, by exact fractions."""
    nearest = np.divide(a, b)
    if mode == "rn":
        return nearest
    found = np.array(nearest)
    plain = np.isfinite(a) & np.isfinite(b) & (b != 0) & (a != 0)
    a, b = np.broadcast_to(a, found.shape), np.broadcast_to(b, found.shape)
    for place in np.flatnonzero(plain):
        exact = Fraction(float(a.flat[place])) / Fraction(float(b.flat[place]))
        found.flat[place] = round_fraction(exact, mode) or (0.0 if exact > 0 else -0.0)
    return found


def round_fraction(exact: Fraction, mode: str) -> float:
    """The f64 that an exact value rounds to."""
    if exact == 0:
        return 0.0
    try:
        nearest = float(exact)
    except OverflowError:
        nearest = math.inf if exact > 0 else -math.inf
    if mode == "rn":
        return nearest
    goes_up = mode == "rp" or (mode == "rz" and exact < 0)
    if goes_up and (nearest == -math.inf or (nearest != math.inf and nearest < exact)):
        return math.nextafter(nearest, math.inf)
    if not goes_up and (nearest == math.inf or (nearest != -math.inf and nearest > exact)):
        return math.nextafter(nearest, -math.inf)
    return nearest


def _split(a: Values) -> tuple[Values, Values]:
    """`a` as the sum of two numbers of 26 bits (Veltkamp)."""
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high


def fma_f64(a: Values, b: Values, c: Values, mode: str) -> Values:
    """`a × b + c` of f64, rounded once."""
    a, b, c = np.broadcast_arrays(a, b, c)
    high, low = a * b, np.zeros(a.shape)
    a1, a0 = _split(a)
    b1, b0 = _split(b)
    low = ((a1 * b1 - high) + a1 * b0 + a0 * b1) + a0 * b0
    # Boldo and Melquiond: the two errors are added to odd, then to the sum.
    upper, rest = two_sum(c, low)
    total, carried = two_sum(high, upper)
    tail = to_odd(*two_sum(carried, rest))
    found = total + tail
    if mode != "rn":
        found = _step_f64(found, two_sum(total, tail)[1], mode)
    size = np.abs(high)
    plain = (size < 1e290) & (size > 1e-250) & (np.abs(a) < 1e290) & (np.abs(b) < 1e290) & (np.abs(c) < 1e290)
    plain &= (np.abs(c) > 1e-250) | (c == 0)
    plain &= np.abs(found) > 1e-290
    special = ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c)
    rare = np.flatnonzero(~plain & ~special)
    found = np.where(special, a * b + c, found)
    if rare.size:
        found.flat[rare] = [
            _fma_exactly(*values, mode)
            for values in zip(a.ravel()[rare].tolist(), b.ravel()[rare].tolist(), c.ravel()[rare].tolist())
        ]
    return found


def _fma_exactly(a: float, b: float, c: float, mode: str) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        rounded = round_fraction(exact, mode)
        return rounded or (0.0 if exact > 0 else -0.0)
    signs = {math.copysign(1, a) * math.copysign(1, b), math.copysign(1, c)}
    if len(signs) == 1 and (a == 0 or b == 0) and c == 0:
        return math.copysign(0.0, signs.pop())
    return -0.0 if mode == "rm" else 0.0


def _step_f64(nearest: Values, error: Values, mode: str) -> Values:
    """The neighbour that `mode` wants where the exact value is `nearest + error`."""
    goes_up = (
        (nearest < 0) | ((nearest == 0) & (error < 0))
        if mode == "rz"
        else np.broadcast_to(mode == "rp", nearest.shape)
    )
    wrong = np.where(goes_up, error > 0, error < 0)
    return np.where(wrong, np.nextafter(nearest, np.where(goes_up, np.inf, -np.inf)), nearest)


def sum_f64(a: Values, b: Values, mode: str) -> Values:
    """`a + b` of f64, rounded once."""
    total, error = two_sum(a, b)
    if mode == "rn":
        return total
    finite = np.isfinite(a) & np.isfinite(b)
    overflown = finite & np.isinf(total)
    found = _step_f64(total, np.where(finite & ~overflown, error, 0), mode)
    if overflown.any():
        inward = overflown & ((total > 0) != (mode == "rp")) if mode != "rz" else overflown
        found = np.where(inward, np.nextafter(total, 0), found)
    if mode == "rm":  # x - x is -0 when rounding down
        found = np.where(
            (found == 0) & (error == 0) & (a == -b) & ~((a == 0) & (np.signbit(a) == np.signbit(b))),
            -0.0,
            found,
        )
    return found
