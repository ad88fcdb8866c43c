"""Ordinary JAX programs, to be compiled by XLA:GPU: indexing, loops, optimisers, steps of training."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.gpu.jax_programs import (
    KEY,
    Program,
    Sizes,
    attend,
    cross_entropy,
    f32,
    layernorm,
    program,
    rmsnorm,
    s32,
)


@program
def embedding_gradient(size: Sizes) -> Program:
    d = size.width()
    loss = lambda table, tokens: jnp.sum(table[tokens] ** 2)  # noqa: E731
    return jax.grad(loss), (f32(size.many(), d), s32(size.batch(), size.length()))


@program
def embedding_with_positions(size: Sizes) -> Program:
    d, n = size.width(), size.length()

    def apply(table: Any, positions: Any, tokens: Any) -> Any:
        return table[tokens] * d**0.5 + positions[None, :n]

    return apply, (f32(size.many(), d), f32(512, d), s32(size.batch(), n))


@program
def one_hot_accuracy(size: Sizes) -> Program:
    n, classes = size.many(), 10

    def apply(logits: Any, labels: Any) -> Any:
        hits = jax.nn.one_hot(logits.argmax(-1), classes) * jax.nn.one_hot(labels, classes)
        return hits.sum() / n, hits.sum(0)

    return apply, (f32(n, classes), s32(n))


@program
def gather_and_scatter(size: Sizes) -> Program:
    n, d = size.many(), size.width()

    def apply(x: Any, at: Any, u: Any) -> Any:
        return x.at[at].add(2 * u).at[at].max(0.0), x[at] - u

    k = size.batch()
    return apply, (f32(n, d), s32(k), f32(k, d))


@program
def top_k(size: Sizes) -> Program:
    k = size.few()

    def apply(x: Any) -> Any:
        values, places = lax.top_k(x, k)
        return jax.nn.softmax(values), places

    return apply, (f32(size.batch(), size.many()),)


@program
def argsort(size: Sizes) -> Program:
    return lambda x: jnp.argsort(-jnp.abs(x), -1), (f32(size.batch(), size.many()),)


@program
def cumulative_sum(size: Sizes) -> Program:
    return lambda x: jnp.cumsum(x * x, -1) / jnp.arange(1, x.shape[-1] + 1), (f32(size.batch(), size.many()),)


@program
def segment_mean(size: Sizes) -> Program:
    n, d, k = size.many(), size.width(), size.batch()

    def apply(x: Any, segment: Any) -> Any:
        total = jax.ops.segment_sum(x, segment, k)
        count = jax.ops.segment_sum(jnp.ones(n), segment, k)
        return total / jnp.maximum(count, 1.0)[:, None]

    return apply, (f32(n, d), s32(n))


@program
def search_sorted(size: Sizes) -> Program:
    return lambda a, x: jnp.searchsorted(a, x), (f32(size.many()), f32(size.batch()))


@program
def histogram(size: Sizes) -> Program:
    k = 16

    def apply(x: Any) -> Any:
        low, high = x.min(), x.max()
        bins = jnp.clip(((x - low) / (high - low + 1e-6) * k).astype(jnp.int32), 0, k - 1)
        return jnp.zeros(k).at[bins].add(1.0)

    return apply, (f32(size.many()),)


@program
def recurrent_scan(size: Sizes) -> Program:
    b, d = size.batch(), size.width()

    def apply(w: Any, u: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(h @ w + x @ u)
            return h, h

        return lax.scan(step, jnp.zeros((b, d)), xs)

    return apply, (f32(d, d), f32(d, d), f32(size.length(), b, d))


@program
def lstm_scan(size: Sizes) -> Program:
    b, d = size.batch(), size.width()

    def apply(w: Any, bias: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ w + bias, 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), c.sum(-1)

        zero = jnp.zeros((b, d))
        return lax.scan(step, (zero, zero), xs)

    return apply, (f32(2 * d, 4 * d), f32(4 * d), f32(size.length(), b, d))


@program
def linear_recurrence(size: Sizes) -> Program:
    def apply(a: Any, x: Any) -> Any:
        combine = lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1])  # noqa: E731
        return lax.associative_scan(combine, (jax.nn.sigmoid(a), x))[1]

    x = f32(32, size.width())
    return apply, (x, x)


@program
def newton_iterations(size: Sizes) -> Program:
    def apply(x: Any) -> Any:
        going = lambda s: jnp.logical_and(s[1] < 20, jnp.max(jnp.abs(s[0] ** 2 - x)) > 1e-4)  # noqa: E731
        return lax.while_loop(going, lambda s: (0.5 * (s[0] + x / s[0]), s[1] + 1), (x + 1.0, 0))[0]

    return apply, (f32(size.many()),)


@program
def fourier_filter(size: Sizes) -> Program:
    def apply(x: Any, w: Any) -> Any:
        return jnp.fft.irfft(jnp.fft.rfft(x) * w) + x

    return apply, (f32(size.batch(), 1024), f32(513))


@program
def gaussian_process(size: Sizes) -> Program:
    n, d = size.length(), size.few()

    def apply(x: Any, y: Any) -> Any:
        distances = ((x[:, None] - x[None]) ** 2).sum(-1)
        kernel = jnp.exp(-0.5 * distances) + 1e-3 * jnp.eye(n)
        factor = jnp.linalg.cholesky(kernel)
        weights = jax.scipy.linalg.cho_solve((factor, True), y)
        return 0.5 * y @ weights + jnp.log(jnp.diag(factor)).sum()

    return apply, (f32(n, d), f32(n))


@program
def power_iteration(size: Sizes) -> Program:
    d = size.width()

    def apply(a: Any, x: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            y = a @ x
            return y / jnp.linalg.norm(y)

        return lax.fori_loop(0, 10, step, x)

    return apply, (f32(d, d), f32(d))


@program
def int8_quantisation(size: Sizes) -> Program:
    d = size.width()

    def quantised(x: Any) -> tuple[Any, Any]:
        scale = jnp.abs(x).max(-1, keepdims=True) / 127
        return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale

    def apply(x: Any, w: Any) -> Any:
        (a, s), (b, t) = quantised(x), quantised(w)
        return lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32) * s * t.T

    return apply, (f32(size.many(), d), f32(d, d))


@program
def mixture_of_experts(size: Sizes) -> Program:
    n, d, e = size.many(), size.width(), size.few()

    def apply(x: Any, gate: Any, w: Any, v: Any) -> Any:
        chances = jax.nn.softmax(x @ gate)
        value, place = lax.top_k(chances, 2)
        weights = (jax.nn.one_hot(place, e) * value[..., None]).sum(1)
        hidden = jax.nn.relu(jnp.einsum("nd,edf->nef", x, w))
        balance = e * (chances.mean(0) * (weights > 0).mean(0)).sum()
        return jnp.einsum("nef,efd,ne->nd", hidden, v, weights), balance

    return apply, (f32(n, d), f32(d, e), f32(e, d, d), f32(e, d, d))


def adam(grads: Any, m: Any, v: Any, params: Any, step: Any, rate: float = 1e-3) -> Any:
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    at = step.astype(jnp.float32) + 1
    a, b = 1 - 0.9**at, 1 - 0.999**at
    new = jax.tree.map(lambda p, m, v: p - rate * (m / a) / (jnp.sqrt(v / b) + 1e-8), params, m, v)
    return new, m, v, step + 1


def _mlp(params: Any, x: Any) -> Any:
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def _layers(*widths: int) -> Any:
    return [(f32(a, b), f32(b)) for a, b in pairwise(widths)]


@program
def mlp_adam_step(size: Sizes) -> Program:
    n, d = size.batch() * 8, size.width()

    def step(params: Any, m: Any, v: Any, count: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(_mlp(p, x), y))(params)
        return loss, *adam(grads, m, v, params, count)

    p = _layers(784, d, d, 10)
    return step, (p, p, p, s32(), f32(n, 784), s32(n))


@program
def mlp_momentum_step(size: Sizes) -> Program:
    n, d = size.batch() * 8, size.width()

    def step(params: Any, momentum: Any, x: Any, y: Any) -> Any:
        grads = jax.grad(lambda p: jnp.mean((_mlp(p, x) - y) ** 2))(params)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return jax.tree.map(lambda p, m: p - 0.01 * m, params, momentum), momentum

    p = _layers(32, d, d, 4)
    return step, (p, p, f32(n, 32), f32(n, 4))


@program
def adamw_with_clipping(size: Sizes) -> Program:
    d = size.width()

    def step(params: Any, m: Any, v: Any, grads: Any, count: Any) -> Any:
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), grads)
        decayed = jax.tree.map(lambda p: p * (1 - 1e-4), params)
        return norm, *adam(grads, m, v, decayed, count)

    p = _layers(d, 4 * d, d)
    return step, (p, p, p, p, s32())


@program
def lion_and_moving_average(size: Sizes) -> Program:
    d = size.width()

    def step(p: Any, m: Any, g: Any, slow: Any) -> Any:
        new = p - 1e-4 * (jnp.sign(0.9 * m + 0.1 * g) + 0.01 * p)
        return new, 0.99 * m + 0.01 * g, 0.999 * slow + 0.001 * new

    x = f32(d, 4 * d)
    return step, (x, x, x, x)


@program
def transformer_block(size: Sizes) -> Program:
    b, n, h = size.few(), size.length(), size.few()
    d = 64 * h

    def apply(x: Any, qkv: Any, out: Any, w: Any, v: Any, s: Any) -> Any:
        q, k, u = (t.reshape(b, n, h, 64) for t in jnp.split(rmsnorm(x, s) @ qkv, 3, -1))
        x = x + attend(q, k, u, jnp.tril(jnp.ones((n, n), bool))).reshape(b, n, d) @ out
        return x + jax.nn.gelu(rmsnorm(x, s) @ w) @ v

    return apply, (f32(b, n, d), f32(d, 3 * d), f32(d, d), f32(d, 4 * d), f32(4 * d, d), f32(d))


@program
def transformer_step(size: Sizes) -> Program:
    b, n, words = size.few(), size.length(), 512
    d = 64 * size.few()

    def loss(p: Any, tokens: Any) -> Any:
        x = p["table"][tokens]
        y = layernorm(x, p["scale"], p["bias"])
        q, k, v = (t.reshape(b, n, d // 64, 64) for t in jnp.split(y @ p["qkv"], 3, -1))
        x = x + attend(q, k, v, jnp.tril(jnp.ones((n, n), bool))).reshape(b, n, d) @ p["out"]
        x = x + jax.nn.gelu(layernorm(x, p["scale"], p["bias"]) @ p["up"]) @ p["down"]
        logits = (x @ p["table"].T)[:, :-1]
        return cross_entropy(logits.reshape(-1, words), tokens[:, 1:].reshape(-1))

    def step(p: Any, tokens: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, tokens)
        return value, jax.tree.map(lambda p, g: p - 0.01 * g, p, grads)

    shapes = {"table": (words, d), "scale": (d,), "bias": (d,), "qkv": (d, 3 * d), "out": (d, d)}
    shapes |= {"up": (d, 4 * d), "down": (4 * d, d)}
    return step, ({name: f32(*dims) for name, dims in shapes.items()}, s32(b, n))


@program
def convolutional_step(size: Sizes) -> Program:
    n, c = size.batch(), size.few() * 4

    def loss(p: Any, x: Any, y: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        for w in p[:2]:
            x = jax.nn.relu(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=numbers))
        return cross_entropy(x.mean((1, 2)) @ p[2], y)

    def step(p: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x, y)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)

    p = [f32(3, 3, 3, c), f32(3, 3, c, 2 * c), f32(2 * c, 10)]
    return step, (p, f32(n, 32, 32, 3), s32(n))


@program
def autoencoder_step(size: Sizes) -> Program:
    n, d, z = size.batch() * 4, size.width(), size.few() * 4

    def loss(p: Any, key: Any, x: Any) -> Any:
        mean, spread = jnp.split(jnp.tanh(x @ p[0]) @ p[1], 2, -1)
        code = mean + jnp.exp(0.5 * spread) * jax.random.normal(key, mean.shape)
        logits = jnp.tanh(code @ p[2]) @ p[3]
        likelihood = (jnp.maximum(logits, 0) - logits * x + jnp.log1p(jnp.exp(-jnp.abs(logits)))).sum(-1)
        divergence = -0.5 * (1 + spread - mean**2 - jnp.exp(spread)).sum(-1)
        return jnp.mean(likelihood + divergence)

    p = [f32(784, d), f32(d, 2 * z), f32(z, d), f32(d, 784)]
    return jax.value_and_grad(loss), (p, KEY, f32(n, 784))


@program
def diffusion_step(size: Sizes) -> Program:
    n, d = size.batch() * 4, size.width()

    def loss(p: Any, key: Any, x: Any) -> Any:
        a, b = jax.random.split(key)
        t = jax.random.uniform(a, (n, 1))
        noise = jax.random.normal(b, x.shape)
        noisy = jnp.cos(t) * x + jnp.sin(t) * noise
        features = jnp.concatenate([noisy, jnp.sin(t * jnp.arange(1, 9)), t], -1)
        return jnp.mean((jax.nn.silu(features @ p[0]) @ p[1] - noise) ** 2)

    p = [f32(32 + 9, d), f32(d, 32)]
    return jax.value_and_grad(loss), (p, KEY, f32(n, 32))


@program
def k_means(size: Sizes) -> Program:
    n, d, k = size.many(), size.few(), size.few() * 4

    def step(x: Any, centres: Any) -> Any:
        distances = (x**2).sum(-1)[:, None] - 2 * x @ centres.T + (centres**2).sum(-1)
        member = jax.nn.one_hot(distances.argmin(-1), k)
        return (member.T @ x) / jnp.maximum(member.sum(0)[:, None], 1.0), distances.min(-1).mean()

    return step, (f32(n, d), f32(k, d))


@program
def n_body(size: Sizes) -> Program:
    n = size.length()

    def step(x: Any, v: Any, m: Any) -> Any:
        apart = x[None] - x[:, None]
        inverse = ((apart**2).sum(-1) + 1e-3) ** -1.5
        v = v + 0.01 * (apart * (m * inverse)[..., None]).sum(1)
        return x + 0.01 * v, v, 0.5 * (m * (v**2).sum(-1)).sum()

    return step, (f32(n, 3), f32(n, 3), f32(n))


@program
def ppo_loss(size: Sizes) -> Program:
    n, k = size.many(), size.few() * 2

    def loss(logits: Any, value: Any, action: Any, old: Any, gain: Any, returns: Any) -> Any:
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        log = jax.nn.log_softmax(logits)
        ratio = jnp.exp(jnp.take_along_axis(log, action[:, None], -1)[:, 0] - old)
        policy = -jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain).mean()
        entropy = -(jnp.exp(log) * log).sum(-1).mean()
        return policy + 0.5 * ((value - returns) ** 2).mean() - 0.01 * entropy

    return jax.value_and_grad(loss, (0, 1)), (f32(n, k), f32(n), s32(n), f32(n), f32(n), f32(n))


@program
def advantage_scan(size: Sizes) -> Program:
    b = size.batch()

    def apply(rewards: Any, values: Any, last: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            gain, following = carry
            reward, value = x
            gain = reward + 0.99 * following - value + 0.99 * 0.95 * gain
            return (gain, value), gain

        return lax.scan(step, (jnp.zeros(b), last), (rewards, values), reverse=True)[1]

    x = f32(size.length(), b)
    return apply, (x, x, f32(b))


@program
def image_augmentation(size: Sizes) -> Program:
    n = size.batch()

    def apply(key: Any, x: Any) -> Any:
        a, b = jax.random.split(key)
        x = jnp.where(jax.random.bernoulli(a, 0.5, (n, 1, 1, 1)), x[:, :, ::-1], x)
        x = jnp.pad(x, ((0, 0), (4, 4), (4, 4), (0, 0)), mode="reflect")
        at = jax.random.randint(b, (2,), 0, 8)
        x = lax.dynamic_slice(x, (0, at[0], at[1], 0), (n, 32, 32, 3)) / 255
        return (x - x.mean((1, 2), keepdims=True)) / (x.std((1, 2), keepdims=True) + 1e-5)

    return apply, (KEY, f32(n, 32, 32, 3))


@program
def contrastive_loss(size: Sizes) -> Program:
    n, d = size.batch() * 4, size.width()

    def loss(x: Any, y: Any) -> Any:
        x, y = (t / jnp.linalg.norm(t, axis=-1, keepdims=True) for t in (x, y))
        logits = x @ y.T / 0.07
        labels = jnp.arange(n)
        return 0.5 * (cross_entropy(logits, labels) + cross_entropy(logits.T, labels))

    return jax.value_and_grad(loss, (0, 1)), (f32(n, d), f32(n, d))


@program
def q_learning_loss(size: Sizes) -> Program:
    n, d = size.batch() * 4, size.width()

    def loss(p: Any, target: Any, x: Any, action: Any, reward: Any, after: Any) -> Any:
        wanted = reward + 0.99 * _mlp(target, after).max(-1)
        value = jnp.take_along_axis(_mlp(p, x), action[:, None], -1)[:, 0]
        error = jnp.abs(lax.stop_gradient(wanted) - value)
        return jnp.where(error < 1, 0.5 * error**2, error - 0.5).mean()

    p = _layers(16, d, d, 4)
    return jax.value_and_grad(loss), (p, p, f32(n, 16), s32(n), f32(n), f32(n, 16))
