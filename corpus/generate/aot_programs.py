"""JAX: programs for the compilers of TPUs and of GPUs. Each function returns what `hlotool compile` takes."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_training import (
    adam,
    cross_entropy,
    mlp,
    mlp_parameters,
    pixels,
    token_batch,
    transformer_parameters,
    transformer_step,
)
from programs import program


def shape(dtype: str, *dims: int) -> jax.ShapeDtypeStruct:
    """An argument of which nothing is known but its type."""
    return jax.ShapeDtypeStruct(dims, dtype)


def mixed_precision_step(parameters, state, images, labels):
    """Adam on weights and moments in f32, with the products in bf16."""

    def loss(parameters):
        narrow = jax.tree.map(lambda p: p.astype(jnp.bfloat16), parameters)
        return cross_entropy(mlp(narrow, images.astype(jnp.bfloat16)).astype(jnp.float32), labels)

    value, gradients = jax.value_and_grad(loss)(parameters)
    return value, *adam(parameters, gradients, state)


def adam_arguments() -> tuple[Any, ...]:
    """Weights, the state of Adam, images and labels."""
    parameters = mlp_parameters()
    zeros = jax.tree.map(np.zeros_like, parameters)
    return parameters, (np.int32(0), zeros, zeros), *pixels((49,))


@program("bf16", "dot", "convert", "input_output_alias")
def train_mlp() -> Any:
    """A step of Adam on a perceptron in mixed precision, weights and moments donated."""

    def train_mlp(parameters, state, images, labels):
        return mixed_precision_step(parameters, state, images, labels)

    return jax.jit(train_mlp, donate_argnums=(0, 1)).trace(*adam_arguments())


@program("bf16", "dot", "gather", "scatter")
def train_decoder() -> Any:
    """A training step of a decoder layer in bf16."""

    def train_decoder(parameters, tokens):
        return transformer_step(parameters, tokens)

    return jax.jit(train_decoder).trace(transformer_parameters("bfloat16"), token_batch())


@program("dot", "softmax", "bf16")
def attention() -> Any:
    """Causal attention with rotary positions and two query heads to a key, and its gradient."""
    length, heads, groups, width = 16, 4, 2, 8

    def rotated(x):
        angle = jnp.arange(length)[:, None] / 100.0 ** (jnp.arange(width // 2) / (width // 2))
        sine, cosine = (f(angle)[:, None].astype(x.dtype) for f in (jnp.sin, jnp.cos))
        left, right = jnp.split(x, 2, -1)
        return jnp.concatenate([left * cosine - right * sine, right * cosine + left * sine], -1)

    def mixed(x, w):
        projected = (x @ w).reshape(*x.shape[:2], heads + 2 * groups, width)
        query, key, value = jnp.split(projected, [heads, heads + groups], 2)
        return jax.nn.dot_product_attention(rotated(query), rotated(key), value, is_causal=True)

    def attention(x, w):
        def loss(x, w):
            return jnp.sum(jnp.square(mixed(x, w).astype(jnp.float32)))

        return mixed(x, w), *jax.grad(loss, (0, 1))(x, w)

    return jax.jit(attention).trace(
        shape("bfloat16", 2, length, 32), shape("bfloat16", 32, (heads + 2 * groups) * width)
    )


@program("topk", "dot", "scatter")
def mixture_of_experts() -> Any:
    """Two of four experts for each token, with a capacity: tokens are dispatched and combined by products."""
    experts, capacity, width = 4, 6, 16

    def mixture_of_experts(x, router, up, down):
        weights, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
        weights = weights / weights.sum(-1, keepdims=True)
        wanted = jax.nn.one_hot(chosen, experts)
        place = jnp.cumsum(wanted.reshape(-1, experts), 0).reshape(wanted.shape) * wanted - 1
        slots = jax.nn.one_hot(place.astype(jnp.int32), capacity) * wanted[..., None]
        dispatch = slots.sum(1)
        hidden = jax.nn.silu(jnp.einsum("tec,td,edf->ecf", dispatch, x, up))
        back = jnp.einsum("ecf,efd->ecd", hidden, down)
        return jnp.einsum("tkec,tk,ecd->td", slots, weights, back)

    arguments = shape("float32", 8, width), shape("float32", width, experts)
    up, down = shape("float32", experts, width, 2 * width), shape("float32", experts, 2 * width, width)
    return jax.jit(mixture_of_experts).trace(*arguments, up, down)


@program("while", "dot", "dynamic-update-slice")
def scan_gru() -> Any:
    """A gated recurrent unit in a scan, rematerialised, and its gradient."""

    def cell(w, h, x):
        update, reset = jnp.split(jax.nn.sigmoid(jnp.concatenate([h, x], -1) @ w["gates"]), 2, -1)
        candidate = jnp.tanh(jnp.concatenate([reset * h, x], -1) @ w["candidate"])
        return (1 - update) * h + update * candidate

    def scan_gru(w, h, xs):
        def loss(w):
            last, all_states = lax.scan(jax.checkpoint(lambda h, x: (cell(w, h, x),) * 2), h, xs)
            return jnp.mean(last**2) + jnp.mean(jnp.abs(all_states))

        return jax.value_and_grad(loss)(w)

    w = {"gates": shape("float32", 12, 16), "candidate": shape("float32", 12, 8)}
    return jax.jit(scan_gru).trace(w, shape("float32", 4, 8), shape("float32", 10, 4, 4))


@program("gather", "scatter", "reduce")
def embedding() -> Any:
    """Bags of words: rows of a table are looked up and averaged; a sparse step of gradient descent on it."""

    def embedding(table, words, targets):
        def loss(table):
            there = (words >= 0)[..., None]
            bags = jnp.where(there, table[words], 0).sum(1) / jnp.maximum(there.sum(1), 1)
            return jnp.mean((bags - targets) ** 2)

        value, gradient = jax.value_and_grad(loss)(table)
        return value, table - 0.5 * gradient

    return jax.jit(embedding).trace(shape("float32", 100, 16), shape("int32", 8, 5), shape("float32", 8, 16))


@program("f8e4m3fn", "dot")
def dot_fp8() -> Any:
    """A product in f8, with the scales that keep its operands in range."""

    def quantised(x):
        scale = jnp.max(jnp.abs(x)) / 448.0 + 1e-12
        return jnp.clip(x / scale, -448, 448).astype(jnp.float8_e4m3fn), scale

    def dot_fp8(x, w):
        (x, x_scale), (w, w_scale) = quantised(x), quantised(w)
        product = lax.dot(x, w, preferred_element_type=jnp.float32)
        return (product * (x_scale * w_scale)).astype(jnp.bfloat16)

    return jax.jit(dot_fp8).trace(shape("float32", 16, 32), shape("float32", 32, 16))


@program("s4", "dot", "convert")
def dot_int4() -> Any:
    """Weights of four bits, with a scale for each group of 16, times activations in bf16."""

    def dot_int4(x, w, scale):
        wide = w.astype(jnp.bfloat16).reshape(2, 16, 24) * scale[:, None]
        return x @ wide.reshape(32, 24)

    arguments = shape("bfloat16", 8, 32), shape("int4", 32, 24), shape("bfloat16", 2, 24)
    return jax.jit(dot_int4).trace(*arguments)


@program("sort", "topk")
def sorts() -> Any:
    """Ranks, the largest, the median, and pairs sorted by two keys."""

    def sorts(x, key, value):
        return jnp.argsort(x), lax.top_k(x, 3), jnp.median(x, -1), lax.sort((key, value), num_keys=2)

    arguments = shape("float32", 4, 24), shape("int32", 16), shape("float32", 16)
    return jax.jit(sorts).trace(*arguments)


@program("xor", "shift-right-logical", "erf-inv")
def random_numbers() -> Any:
    """Dropout and normal numbers from one key each."""

    def random_numbers(key, x):
        kept = jax.random.bernoulli(jax.random.wrap_key_data(key[0]), 0.75, x.shape)
        return jnp.where(kept, x / 0.75, 0), jax.random.normal(jax.random.wrap_key_data(key[1]), (6, 5))

    return jax.jit(random_numbers).trace(shape("uint32", 2, 2), shape("float32", 8, 12))


@program("fft", "complex")
def fourier_filter() -> Any:
    """A circular convolution by real transforms, and the power spectrum of an image."""

    def fourier_filter(signal, kernel, image):
        product = jnp.fft.rfft(signal) * jnp.fft.rfft(kernel, signal.shape[-1])
        return jnp.fft.irfft(product, signal.shape[-1]), jnp.abs(jnp.fft.fft2(image)) ** 2

    arguments = shape("float32", 3, 24), shape("float32", 5), shape("float32", 8, 12)
    return jax.jit(fourier_filter).trace(*arguments)
