"""Complex arithmetic where NumPy's differs from XLA's; everything else is NumPy's own, which follows C99.

The real and imaginary part of a zero or infinity keep their signs. XLA's CPU code generator takes an
imaginary part of -0 for +0 in `sqrt`, `exponential`, `sine`, `cosine` and `tanh`, and answers NaN + NaNi
where C99 wants an infinite part; XLA's evaluator follows C99, and so do these functions.
"""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy.integers import some
from hlotool.ir.arrays import Array


def compose(real: Array, imaginary: Array) -> Array:
    """The complex array of two real ones; unlike `real + 1j * imaginary` exact for zeros and infinities."""
    dtype = np.result_type(real, imaginary, np.complex64)
    result = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imaginary)), dtype)
    result.real = real
    result.imag = imaginary
    return result


def divide(a: Array, b: Array) -> Array:
    """Quotient; infinite over finite is infinite, finite over infinite is zero (C99, annex G)."""
    result = np.divide(a, b)
    lost = np.isnan(result.real) & np.isnan(result.imag)
    if not some(lost):
        return result
    infinite_a, infinite_b = np.isinf(a), np.isinf(b)
    overflows = lost & infinite_a & np.isfinite(b)
    vanishes = lost & infinite_b & np.isfinite(a)
    result = np.where(overflows, _scaled_quotient(_unit_box(a), b, np.inf), result)
    return np.where(vanishes, _scaled_quotient(a, _unit_box(b), 0.0), result)


def _unit_box(z: Array) -> Array:
    """Infinite parts become ±1, all others ±0."""
    real, imaginary = (np.copysign(np.isinf(part).astype(part.dtype), part) for part in (z.real, z.imag))
    return compose(real, imaginary)


def _scaled_quotient(a: Array, b: Array, scale: float) -> Array:
    """`scale` times a times the conjugate of b: the direction of a / b."""
    real = scale * (a.real * b.real + a.imag * b.imag)
    imaginary = scale * (a.imag * b.real - a.real * b.imag)
    return compose(real, imaginary)


def power(base: Array, exponent: Array) -> Array:
    """|x|^c · exp(-dφ) · (cos q + i sin q), q = cφ + d log|x|, where φ = arg x and the exponent is c + di.

    x^0 = 1^x = 1, and 0 and +inf to a real exponent are 0 or +inf, or 1 or 0. Where a factor is infinite and
    another 0, or q is infinite, the result is NaN, as in XLA's CPU code (`EmitComplexPower`); C99 leaves it
    open.
    """
    size, angle = np.abs(base), np.angle(base)
    c, d = exponent.real, exponent.imag
    factor = np.power(size, c) * np.exp(-d * angle)
    turn = c * angle + d * np.log(size)
    result = compose(factor * np.cos(turn), factor * np.sin(turn))
    real, positive = d == 0, c > 0
    infinite = (base.real == np.inf) & (base.imag == 0) & real
    zero = (size == 0) & real & positive
    one = (base == 1) | (exponent == 0)
    result = np.where(zero | (infinite & (c < 0)), result.dtype.type(0), result)
    result = np.where(infinite & positive, result.dtype.type(np.inf), result)
    return np.where(one, result.dtype.type(1), result)


def sign(z: Array) -> Array:
    """z / |z|, and z itself where it is zero."""
    size = np.abs(z)
    size = np.where(size == 0, size.dtype.type(1), size)
    return compose(z.real / size, z.imag / size)


def rsqrt(z: Array) -> Array:
    """1 / sqrt(z)."""
    return divide(z.dtype.type(1), np.sqrt(z))


def logistic(z: Array) -> Array:
    """1 / (1 + exp(-z))."""
    return divide(z.dtype.type(1), np.add(np.exp(np.negative(z)), 1))


def log1p(z: Array) -> Array:
    """log(1 + z), accurate also where z is small (NumPy's loses all digits there).

    The real part cancels where x is close to -y²/2, so c64 computes it in f64.
    """
    x, y = z.real, z.imag
    wide_x, wide_y = x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    near = np.maximum(np.abs(x), np.abs(y)) < 0.5
    small = np.log1p(wide_x * (wide_x + 2) + wide_y * wide_y) / 2
    real = np.where(near, small, np.log(np.hypot(wide_x + 1, wide_y)))
    return compose(real.astype(x.dtype), np.arctan2(y, x + 1))


def atan2(y: Array, x: Array) -> Array:
    """-i · log((x + iy) / sqrt(x² + y²))."""
    i = y.dtype.type(1j)
    angle: Array = -i * np.log(divide(x + i * y, np.sqrt(x * x + y * y)))
    return angle
