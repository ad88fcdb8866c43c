"""Programs with float8 as people write them in JAX, and what is true of them.

The scalings are those of XLA's GemmRewriter tests, of Transformer Engine (delayed scaling), of Flax's fp8_ops
(a conversion and back, with a history of amax), of torchao (a scale per row) and of MaxText.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Name → a function, its arguments, how its tensors are scaled (in whatever order; nothing of one that is no
#: conversion), and how many products read any.
Made = tuple[Callable[..., Any], tuple[Any, ...], list[str], int]


def programs() -> dict[str, Made]:
    """All of them; needs JAX."""
    import jax
    import jax.numpy as jnp

    e4, e5 = jnp.float8_e4m3fn, jnp.float8_e5m2

    def shape(*dims: int, dtype: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct(dims, dtype)

    x, w, s = shape(8, 16), shape(16, 12), shape()
    xb, wb = shape(8, 16, dtype=jnp.bfloat16), shape(16, 12, dtype=jnp.bfloat16)
    x8, w8 = shape(8, 16, dtype=e4), shape(16, 12, dtype=e4)
    history = shape(16)

    def top(kind: Any) -> Any:
        return jnp.float32(jnp.finfo(kind).max)

    def clipped(v: Any, kind: Any) -> Any:
        return jnp.clip(v, -top(kind), top(kind)).astype(kind)

    def dot(a: Any, b: Any) -> Any:
        return jax.lax.dot(a, b, preferred_element_type=jnp.float32)

    def plain(x, w):
        return dot(x.astype(e4), w.astype(e4))

    def mixed_types(x, w):
        return dot(x.astype(e4), w.astype(e5))

    def constant_scale(x, w):
        return dot((x * 16.0).astype(e4), (w * 8.0).astype(e4)) / 128.0

    def argument_scale(x, w, sx, sw):
        return dot(clipped(x * sx, e4), clipped(w * sw, e4)) / (sx * sw)

    def divided_by_argument(x, w, sx, sw):
        return dot(clipped(x / sx, e4), clipped(w / sw, e4)) * (sx * sw)

    def current_scaling(x, w):
        sx, sw = (top(e4) / jnp.max(jnp.abs(v)) for v in (x, w))
        return dot(clipped(x * sx, e4), clipped(w * sw, e4)) / (sx * sw)

    def current_scaling_with_floor(x, w):
        sx, sw = (jnp.maximum(jnp.max(jnp.abs(v)), 1e-12) / top(e4) for v in (x, w))
        return dot(clipped(x / sx, e4), clipped(w / sw, e4)) * sx * sw

    def power_of_two_scaling(x, w):
        sx, sw = (jnp.exp2(jnp.floor(jnp.log2(top(e4) / jnp.max(jnp.abs(v))))) for v in (x, w))
        return dot(clipped(x * sx, e4), clipped(w * sw, e4)) / (sx * sw)

    def delayed_scaling(x, w, hx, hw):
        sx, sw = (jnp.max(h) / top(e4) for h in (hx, hw))
        new = jnp.roll(hx, -1).at[0].set(jnp.max(jnp.abs(x)))
        return dot(clipped(x / sx, e4), clipped(w / sw, e4)) * (sx * sw), new

    def delayed_scaling_of_flax(x, w, hx, sx):
        amax = jnp.max(hx, axis=0)
        factor = (top(e4) / amax) / (2**0)
        factor = jnp.where(amax > 0.0, factor, 1 / sx)
        factor = jnp.where(jnp.isfinite(amax), factor, 1 / sx)
        new = 1 / factor
        return dot(clipped(x / new, e4).astype(jnp.float32) * new, w)

    def conversion_and_back(x, w, sx, sw):
        parts = ((clipped(v / k, e4), k) for v, k in ((x, sx), (w, sw)))
        return dot(*(q.astype(jnp.bfloat16) * k.astype(jnp.bfloat16) for q, k in parts))

    def given_in_float8(x8, w8, sx, sw):
        a, b = (v.astype(jnp.bfloat16) * k.astype(jnp.bfloat16) for v, k in ((x8, sx), (w8, sw)))
        return dot(a, b)

    def weights_alone(x, w8, sw):
        return dot(x, w8.astype(jnp.float32) * sw)

    def from_bf16(xb, wb, sx):
        return dot(clipped(xb * sx.astype(jnp.bfloat16), e4), wb.astype(e4)) / sx

    def result_in_float8(x8, w8, sx, sw, sd):
        product = dot(x8.astype(jnp.float32) * sx, w8.astype(jnp.float32) * sw)
        return clipped(product * sd, e4), jnp.max(jnp.abs(product))

    def with_bias_and_relu(x, w, b, sx, sw):
        return jax.nn.relu(dot(clipped(x * sx, e4), clipped(w * sw, e4)) / (sx * sw) + b)

    def scale_by_row(x, w):
        sx = top(e4) / jnp.max(jnp.abs(x), axis=1, keepdims=True)
        sw = top(e4) / jnp.max(jnp.abs(w), axis=0, keepdims=True)
        return dot(clipped(x * sx, e4), clipped(w * sw, e4)) / (sx * sw)

    def scale_by_block(x, w):
        blocks = x.reshape(8, 4, 4)
        sx = jnp.max(jnp.abs(blocks), axis=2, keepdims=True) / top(e4)
        q = clipped(blocks / sx, e4)
        return dot((q.astype(jnp.float32) * sx).reshape(8, 16), w)

    def behind_a_normalisation(x, w, g):
        h = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g
        return dot(h.astype(e4), w.astype(e4))

    def gradient_in_e5m2(g, w8, sg, sw):
        q = clipped(g * sg, e5)
        return dot(q.astype(jnp.float32) / sg, (w8.astype(jnp.float32) * sw).T)

    def transposed_weights(x, w, sx, sw):
        # Without a type of its own the result has that of the factors.
        a, b = clipped(x * sx, e4), clipped(w * sw, e4).T
        return jax.lax.dot_general(a, b, (((1,), (1,)), ((), ()))).astype(jnp.float32)

    def batched(x, w, sx):
        q = clipped(x * sx, e4)
        return jnp.einsum("bij,bjk->bik", q, w.astype(e4), preferred_element_type=jnp.float32)

    def in_a_loop(x, w, sx):
        def body(x: Any, w: Any) -> Any:
            return jnp.tanh(dot(clipped(x * sx, e4), w.astype(e4)) / sx), None

        return jax.lax.scan(body, x, w)[0]

    def in_functions(x, w, sx, sw):
        quantize = jax.jit(lambda v, k: clipped(v * k, e4))
        return dot(quantize(x, sx), quantize(w, sw)) / (sx * sw)

    def other_types(x, w):
        a = [x.astype(kind) for kind in (jnp.float8_e4m3b11fnuz, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz)]
        return dot(a[0].astype(jnp.float32), w), a[1:]

    bias = shape(12)
    none, constant, dynamic, delayed = "none", "constant", "dynamic", "delayed"
    given = ""
    made: list[tuple[Callable[..., Any], tuple[Any, ...], list[str], int]] = [
        (plain, (x, w), [none] * 2, 1),
        (mixed_types, (x, w), [none] * 2, 1),
        (constant_scale, (x, w), [constant] * 2, 1),
        (argument_scale, (x, w, s, s), [delayed] * 2, 1),
        (divided_by_argument, (x, w, s, s), [delayed] * 2, 1),
        (current_scaling, (x, w), [dynamic] * 2, 1),
        (current_scaling_with_floor, (x, w), [dynamic] * 2, 1),
        (power_of_two_scaling, (x, w), [dynamic] * 2, 1),
        (delayed_scaling, (x, w, history, history), [delayed] * 2, 1),
        (delayed_scaling_of_flax, (x, w, history, s), [delayed], 1),
        (conversion_and_back, (x, w, s, s), [delayed] * 2, 1),
        (given_in_float8, (x8, w8, s, s), [given] * 2, 1),
        (weights_alone, (x, w8, s), [given], 1),
        (from_bf16, (xb, wb, s), [none, delayed], 1),
        (result_in_float8, (x8, w8, s, s, s), [given, given, delayed], 1),
        (with_bias_and_relu, (x, w, bias, s, s), [delayed] * 2, 1),
        (scale_by_row, (x, w), [dynamic] * 2, 1),
        (scale_by_block, (x, w), [dynamic], 1),
        (behind_a_normalisation, (x, w, shape(16)), [none] * 2, 1),
        (gradient_in_e5m2, (shape(8, 12), w8, s, s), [given, delayed], 1),
        (transposed_weights, (x, w, s, s), [delayed, delayed, given], 1),
        (batched, (shape(3, 8, 16), shape(3, 16, 12), s), [delayed, none], 1),
        (in_a_loop, (shape(8, 16), shape(4, 16, 16), s), [delayed, none], 1),
        (in_functions, (x, w, s, s), [delayed] * 2, 1),
        (other_types, (x, w), [none] * 3, 1),
    ]
    return {function.__name__: (function, arguments, *rest) for function, arguments, *rest in made}  # type: ignore[misc]
