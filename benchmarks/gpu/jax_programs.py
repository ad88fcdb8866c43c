"""Ordinary JAX programs, to be compiled by XLA:GPU: building blocks. Whole steps are in `jax_steps`.

A program is a function of `Sizes` that returns a function and the shapes of its arguments. Nothing here runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

#: A function and its arguments, as trees of shapes.
Program: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]

#: By name, in the order in which they are written.
PROGRAMS: dict[str, Callable[[Sizes], Program]] = {}


class Sizes:
    """Sizes that a seed draws.

    Args:
        seed: of the numbers, with the name of the program.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def batch(self) -> int:
        return self._random.choice([8, 16, 24, 32])

    def length(self) -> int:
        return self._random.choice([64, 96, 128, 200])

    def width(self) -> int:
        return self._random.choice([64, 96, 128, 256, 384])

    def many(self) -> int:
        return self._random.choice([1000, 1024, 4096, 10_000])

    def few(self) -> int:
        return self._random.choice([2, 4, 8])


def program(build: Callable[[Sizes], Program]) -> Callable[[Sizes], Program]:
    PROGRAMS[build.__name__] = build
    return build


def f32(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims, jnp.float32)


def bf16(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims, jnp.bfloat16)


def s32(*dims: int) -> Any:
    return jax.ShapeDtypeStruct(dims, jnp.int32)


KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)


@program
def random_normal(size: Sizes) -> Program:
    dims = size.batch(), size.many()
    return lambda key: jax.random.normal(key, dims), (KEY,)


@program
def random_uniform(size: Sizes) -> Program:
    dims = size.many(), size.few()
    return lambda key: jax.random.uniform(key, dims, minval=-1.0), (KEY,)


@program
def dropout(size: Sizes) -> Program:
    x = f32(size.batch(), size.width())

    def apply(key: Any, x: Any) -> Any:
        return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)

    return apply, (KEY, x)


@program
def categorical_sampling(size: Sizes) -> Program:
    logits = f32(size.batch(), size.many())
    return lambda key, x: jax.random.categorical(key, x / 0.7), (KEY, logits)


@program
def truncated_initialisation(size: Sizes) -> Program:
    dims = size.width(), size.width()
    return lambda key: 0.02 * jax.random.truncated_normal(key, -2.0, 2.0, dims), (KEY,)


@program
def permutation(size: Sizes) -> Program:
    return lambda key, x: jax.random.permutation(key, x), (KEY, f32(size.many()))


@program
def batchnorm_inference(size: Sizes) -> Program:
    c = size.width()
    x, p = f32(size.batch(), 14, 14, c), f32(c)

    def apply(x: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
        return jax.nn.relu((x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias)

    return apply, (x, p, p, p, p)


def _batchnorm(x: Any, scale: Any, bias: Any) -> tuple[Any, Any, Any]:
    mean = x.mean((0, 1, 2))
    variance = (x**2).mean((0, 1, 2)) - mean**2
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias, mean, variance


@program
def batchnorm_training(size: Sizes) -> Program:
    c = size.width()
    x, p = f32(size.batch(), 14, 14, c), f32(c)

    def apply(x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
        y, m, v = _batchnorm(x, scale, bias)
        return y, 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v

    return apply, (x, p, p, p, p)


@program
def batchnorm_gradient(size: Sizes) -> Program:
    c = size.width()
    loss = lambda x, s, b: jnp.sum(jax.nn.relu(_batchnorm(x, s, b)[0]))  # noqa: E731
    return jax.grad(loss, (0, 1, 2)), (f32(size.batch(), 7, 7, c), f32(c), f32(c))


def layernorm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.var(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6) * scale + bias


@program
def layer_norm(size: Sizes) -> Program:
    d = size.width()
    return layernorm, (f32(size.batch(), size.length(), d), f32(d), f32(d))


@program
def layer_norm_gradient(size: Sizes) -> Program:
    d = size.width()
    loss = lambda x, s, b, y: jnp.sum(layernorm(x, s, b) * y)  # noqa: E731
    x = f32(size.batch(), size.length(), d)
    return jax.grad(loss, (0, 1, 2)), (x, f32(d), f32(d), x)


def rmsnorm(x: Any, scale: Any) -> Any:
    wide = x.astype(jnp.float32)
    normal = wide * lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    return normal.astype(x.dtype) * scale


@program
def rms_norm_bf16(size: Sizes) -> Program:
    d = size.width()
    return rmsnorm, (bf16(size.batch(), size.length(), d), bf16(d))


@program
def group_norm(size: Sizes) -> Program:
    n, c, g = size.batch(), size.width(), size.few()

    def apply(x: Any, scale: Any) -> Any:
        y = x.reshape(n, 8, 8, g, c // g)
        mean, variance = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
        return ((y - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape) * scale

    return apply, (f32(n, 8, 8, c), f32(c))


@program
def softmax(size: Sizes) -> Program:
    return lambda x: jax.nn.softmax(x, axis=-1), (f32(size.batch(), size.many()),)


def cross_entropy(logits: Any, labels: Any) -> Any:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1)
    return -chosen.mean()


@program
def cross_entropy_loss(size: Sizes) -> Program:
    n = size.batch()
    return cross_entropy, (f32(n, size.many()), s32(n))


@program
def cross_entropy_gradient(size: Sizes) -> Program:
    n = size.batch()
    return jax.grad(cross_entropy), (f32(n, size.many()), s32(n))


@program
def label_smoothing(size: Sizes) -> Program:
    n, classes = size.batch(), size.many()

    def loss(logits: Any, labels: Any) -> Any:
        wanted = 0.9 * jax.nn.one_hot(labels, classes) + 0.1 / classes
        return -(wanted * jax.nn.log_softmax(logits)).sum(-1).mean()

    return loss, (f32(n, classes), s32(n))


@program
def focal_loss(size: Sizes) -> Program:
    n = size.many()

    def loss(x: Any, y: Any) -> Any:
        p = jax.nn.sigmoid(x)
        right = jnp.where(y > 0, p, 1 - p)
        return jnp.mean(-((1 - right) ** 2) * jnp.log(jnp.clip(right, 1e-7, 1.0)))

    return jax.value_and_grad(loss), (f32(n), f32(n))


@program
def gelu_mlp_bf16(size: Sizes) -> Program:
    d = size.width()

    def apply(x: Any, w: Any, b: Any, v: Any) -> Any:
        return jax.nn.gelu(x @ w + b) @ v + x

    return apply, (bf16(size.many(), d), bf16(d, 4 * d), bf16(4 * d), bf16(4 * d, d))


@program
def swiglu(size: Sizes) -> Program:
    d = size.width()

    def apply(x: Any, w: Any, v: Any, u: Any) -> Any:
        return (jax.nn.silu(x @ w) * (x @ v)) @ u

    return apply, (f32(size.many(), d), f32(d, 2 * d), f32(d, 2 * d), f32(2 * d, d))


def attend(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


def _heads(size: Sizes, kind: Callable[..., Any] = f32) -> tuple[Any, Any, Any]:
    x = kind(size.few(), size.length(), size.few(), 64)
    return x, x, x


@program
def attention(size: Sizes) -> Program:
    return attend, _heads(size)


@program
def attention_gradient(size: Sizes) -> Program:
    return jax.grad(lambda q, k, v: jnp.sum(attend(q, k, v) ** 2), (0, 1, 2)), _heads(size)


@program
def causal_attention_bf16(size: Sizes) -> Program:
    q, k, v = _heads(size, bf16)
    n = q.shape[1]
    return lambda q, k, v: attend(q, k, v, jnp.tril(jnp.ones((n, n), bool))), (q, k, v)


@program
def padded_attention(size: Sizes) -> Program:
    q, k, v = _heads(size)
    keep = s32(q.shape[0])

    def apply(q: Any, k: Any, v: Any, lengths: Any) -> Any:
        mask = jnp.arange(k.shape[1])[None, None, None, :] < lengths[:, None, None, None]
        return attend(q, k, v, mask)

    return apply, (q, k, v, keep)


def rope(x: Any, position: Any) -> Any:
    half = x.shape[-1] // 2
    angles = position[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


@program
def rotary_embedding(size: Sizes) -> Program:
    n = size.length()
    return rope, (f32(size.batch(), n, size.few(), 64), f32(n))


@program
def decode_with_cache(size: Sizes) -> Program:
    b, n, h = size.few(), size.length(), size.few()

    def apply(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any) -> Any:
        keys = lax.dynamic_update_slice(keys, k, (0, at, 0, 0))
        values = lax.dynamic_update_slice(values, v, (0, at, 0, 0))
        mask = (jnp.arange(n) <= at)[None, None, None, :]
        return attend(q, keys, values, mask), keys, values

    one, all_of_them = f32(b, 1, h, 64), f32(b, n, h, 64)
    return apply, (one, one, one, all_of_them, all_of_them, s32())


@program
def convolution_relu_pool(size: Sizes) -> Program:
    c = size.few() * 4

    def apply(x: Any, w: Any, b: Any) -> Any:
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = jax.nn.relu(y + b)
        return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    return apply, (f32(size.batch(), 32, 32, 3), f32(3, 3, 3, c), f32(c))


def _convolve(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    window = (stride, stride)
    return lax.conv_general_dilated(
        x, w, window, "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


@program
def residual_block(size: Sizes) -> Program:
    c = size.few() * 8

    def apply(x: Any, w: Any, v: Any, s: Any, t: Any) -> Any:
        y = jax.nn.relu(_convolve(x, w) * s)
        return jax.nn.relu(_convolve(y, v) * t + x)

    w = f32(3, 3, c, c)
    return apply, (f32(size.batch(), 16, 16, c), w, w, f32(c), f32(c))


@program
def depthwise_convolution(size: Sizes) -> Program:
    c = size.few() * 8

    def apply(x: Any, w: Any, v: Any) -> Any:
        return jax.nn.relu6(_convolve(jax.nn.relu6(_convolve(x, w, groups=c)), v))

    return apply, (f32(size.batch(), 16, 16, c), f32(3, 3, 1, c), f32(1, 1, c, 2 * c))


@program
def convolution_gradient(size: Sizes) -> Program:
    c = size.few() * 8
    loss = lambda w, x: jnp.mean(jnp.tanh(_convolve(x, w, 2)) ** 2)  # noqa: E731
    return jax.grad(loss, (0, 1)), (f32(3, 3, 4, c), f32(size.batch(), 16, 16, 4))


@program
def max_pool_gradient(size: Sizes) -> Program:
    def loss(x: Any) -> Any:
        y = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.sum(y**2)

    return jax.grad(loss), (f32(size.batch(), 16, 16, size.few()),)


@program
def average_pool_and_resize(size: Sizes) -> Program:
    n, c = size.batch(), size.few()

    def apply(x: Any) -> Any:
        y = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        return jax.image.resize(y, (n, 32, 32, c), "nearest") + x

    return apply, (f32(n, 32, 32, c),)
