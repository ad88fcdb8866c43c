"""JAX: reductions, windows, cumulative operations and Fourier transforms."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_programs import array
from programs import Call, program

WINDOW, STRIDES = (1, 3, 2, 1), (1, 2, 2, 1)


def _average(x):
    total = lax.reduce_window(x, 0.0, lax.add, WINDOW, STRIDES, "SAME")
    return total / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, WINDOW, STRIDES, "SAME")


def _maximum(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, WINDOW, STRIDES, "SAME")


@program("reduce-window", "window dilation", "base dilation")
def pooling() -> Iterator[Call]:
    """Maximum and average pooling, windows with dilations and explicit padding, a minimum over integers."""

    def pooling(x, n):
        dilated = lax.reduce_window(
            x[0, :, :, 0], 0.0, lax.add, (2, 2), (1, 1), ((1, 0), (2, 1)), (2, 1), (1, 2)
        )
        smallest = lax.reduce_window(n, np.int32(2**31 - 1), lax.min, (3,), (1,), "VALID")
        return _maximum(x), _average(x), dilated, smallest

    yield pooling, array(2, 6, 7, 3), array(12, dtype="int32")


@program("select-and-scatter", "reduce-window", "pad")
def pooling_gradient() -> Iterator[Call]:
    """Gradients of maximum and average pooling."""

    def pooling_gradient(x):
        return jax.grad(lambda x: jnp.sum(_maximum(x) ** 2) + jnp.sum(_average(x) ** 3))(x)

    yield pooling_gradient, array(2, 6, 7, 3)


@program("reduce-window", "slice", "pad")
def cumulative() -> Iterator[Call]:
    """cumsum, cumprod, cummax and cumlogsumexp, also in reverse, and the gradient of one."""

    def cumulative(x):
        return (
            jnp.cumsum(x, axis=0),
            jnp.cumprod(x, axis=1),
            lax.cummax(x, axis=1, reverse=True),
            lax.cumlogsumexp(x, axis=0),
            jax.grad(lambda x: jnp.sum(jnp.cumsum(x, axis=1) ** 2))(x),
        )

    yield cumulative, array(5, 9)


@program("reduce", "variadic reduce", "argmax", "and", "or")
def reductions() -> Iterator[Call]:
    """Reductions with each common monoid, several operands at once, and over an empty dimension."""

    def reductions(x, mask, empty):
        pair = lax.reduce(
            (x, x * x), (jnp.float32(0), jnp.float32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)
        )
        return (
            jnp.sum(x, 0),
            jnp.prod(x, 1),
            jnp.max(x),
            jnp.argmax(x, 1),
            jnp.argmin(x, 0),
            jnp.any(mask, 0),
            jnp.all(mask, 1),
            jnp.std(x, 1),
            jax.nn.logsumexp(x, 1),
            jnp.sum(empty, 0),
            pair,
        )

    x = array(4, 6)
    x[1, 2] = x[1, 4] = 9.0
    yield reductions, x, x > 0, np.zeros((0, 3), np.float32)


@program("fft", "c64", "c128", x64=True)
def fourier() -> Iterator[Call]:
    """Every kind of transform in one and two dimensions, in both precisions."""

    def fourier(real, single, double):
        return (
            jnp.fft.fft(single),
            jnp.fft.ifft2(single),
            jnp.fft.fftn(double),
            jnp.fft.rfft(real),
            jnp.fft.rfft2(real),
            jnp.fft.irfft(single, n=6),
            jnp.fft.fftshift(jnp.fft.fft(real.astype(jnp.float64), axis=0)),
        )

    double = array(3, 4, dtype="float64") + 1j * array(3, 4, seed=1, dtype="float64")
    yield fourier, array(4, 8), double.astype(np.complex64), double
