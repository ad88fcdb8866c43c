"""Layers, losses, norms, attention, optimizers: what a model is made of."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.adversary.drawn import Program, count, family, floats, index, integers, positive, preds


def _n(rng: random.Random) -> int:
    return rng.choice([3, 4, 5, 6, 7, 8, 12, 16, 17])


@family
def dense_relu(rng: random.Random) -> Program:
    n, m, k = _n(rng), _n(rng), _n(rng)

    def f(x, w, b):
        return jax.nn.relu(x @ w + b)

    return Program(f, (floats(n, m), floats(m, k), floats(k)))


@family
def mlp_gelu(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)
    exactly = rng.random() < 0.5

    def f(x, w, v):
        return jax.nn.gelu(x @ w, approximate=not exactly) @ v

    return Program(f, (floats(n, m), floats(m, 2 * m), floats(2 * m, n)))


@family
def layer_norm(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)
    epsilon = rng.choice([1e-5, 1e-6, 1e-3])

    def f(x, scale, bias):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + epsilon) * scale + bias

    return Program(f, (floats(n, m), floats(m), floats(m)))


@family
def rms_norm(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)
    epsilon = rng.choice([1e-6, 1e-5, 1e-8])

    def f(x, scale):
        x32 = x.astype(jnp.float32)
        y = x32 * lax.rsqrt((x32 * x32).mean(-1, keepdims=True) + epsilon)
        return y * scale

    return Program(f, (floats(n, m, dtype=rng.choice(["float32", "bfloat16"])), floats(m)))


@family
def batch_norm(rng: random.Random) -> Program:
    n, c = _n(rng), _n(rng)
    momentum = rng.choice([0.9, 0.99])

    def f(x, mean, var, scale):
        m = x.mean(0)
        v = (x * x).mean(0) - m * m
        y = (x - m) / jnp.sqrt(jnp.maximum(v, 0.0) + 1e-5) * scale
        return y, momentum * mean + (1 - momentum) * m, momentum * var + (1 - momentum) * v

    return Program(f, (floats(n, c), floats(c), positive(c), floats(c)))


@family
def attention(rng: random.Random) -> Program:
    b, s, d = rng.choice([1, 2]), rng.choice([4, 6, 8]), rng.choice([4, 8])
    causal = rng.random() < 0.6

    def f(q, k, v, lengths):
        logits = jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(d).astype(q.dtype)
        if causal:
            logits = jnp.where(jnp.tril(jnp.ones((s, s), bool)), logits, -1e30)
        logits = jnp.where(jnp.arange(s)[None, None, :] < lengths[:, None, None], logits, -jnp.inf)
        p = jax.nn.softmax(logits, axis=-1)
        return jnp.einsum("bqk,bkd->bqd", p, v)

    return Program(f, (floats(b, s, d), floats(b, s, d), floats(b, s, d), index(s + 1, b)))


@family
def attention_online(rng: random.Random) -> Program:
    s, d, chunk = 8, rng.choice([4, 5]), rng.choice([2, 4])

    def f(q, k, v):
        def step(carry, kv):
            m, total, o = carry
            kc, vc = kv
            logits = q @ kc.T
            new = jnp.maximum(m, logits.max(-1))
            p = jnp.exp(logits - new[:, None])
            a = jnp.exp(m - new)
            return (new, total * a + p.sum(-1), o * a[:, None] + p @ vc), ()

        start = (jnp.full((s,), -jnp.inf), jnp.zeros((s,)), jnp.zeros((s, d)))
        (_, total, o), _ = lax.scan(step, start, (k.reshape(-1, chunk, d), v.reshape(-1, chunk, d)))
        return o / total[:, None]

    return Program(f, (floats(s, d), floats(s, d), floats(s, d)))


@family
def cross_entropy(rng: random.Random) -> Program:
    n, c = _n(rng), _n(rng)
    smooth = rng.choice([0.0, 0.1])

    def f(logits, labels, mask):
        logp = jax.nn.log_softmax(logits)
        one = jax.nn.one_hot(labels, c) * (1 - smooth) + smooth / c
        loss = -(one * logp).sum(-1)
        return jnp.where(mask, loss, 0.0).sum() / jnp.maximum(mask.sum(), 1)

    return Program(f, (floats(n, c), index(c, n), preds(n)))


@family
def huber_grad(rng: random.Random) -> Program:
    n = _n(rng)
    delta = rng.choice([0.5, 1.0, 2.0])

    def f(x, y):
        def loss(x):
            e = jnp.abs(x - y)
            return jnp.where(e <= delta, 0.5 * e * e, delta * (e - 0.5 * delta)).sum()

        return jax.value_and_grad(loss)(x)

    return Program(f, (floats(n), floats(n)))


@family
def focal_loss(rng: random.Random) -> Program:
    n = _n(rng)
    gamma = rng.choice([1.5, 2.0])

    def f(x, y):
        p = jnp.clip(jax.nn.sigmoid(x), 1e-6, 1 - 1e-6)
        pt = jnp.where(y, p, 1 - p)
        return (-((1 - pt) ** gamma) * jnp.log(pt)).mean()

    return Program(f, (floats(n), preds(n)))


@family
def adam(rng: random.Random) -> Program:
    n = _n(rng)
    lr, eps = rng.choice([1e-3, 3e-4, 0.01]), rng.choice([1e-8, 1e-7])

    def f(p, g, m, v, t):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        t1 = t + 1
        mh = m / (1 - 0.9 ** t1.astype(jnp.float32))
        vh = v / (1 - 0.999 ** t1.astype(jnp.float32))
        return p - lr * mh / (jnp.sqrt(vh) + eps), m, v, t1

    return Program(f, (floats(n), floats(n), floats(n), positive(n), count()))


@family
def sgd_clip(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)
    limit = rng.choice([0.5, 1.0, 5.0])

    def f(p, q, g, h):
        norm = jnp.sqrt((g * g).sum() + (h * h).sum())
        scale = jnp.minimum(1.0, limit / (norm + 1e-6))
        return p - 0.1 * g * scale, q - 0.1 * h * scale, norm

    return Program(f, (floats(n), floats(m, n), floats(n), floats(m, n)))


@family
def loss_scaling(rng: random.Random) -> Program:
    n = _n(rng)

    def f(p, g, scale, good):
        g32 = g.astype(jnp.float32) / scale
        ok = jnp.isfinite(g32).all()
        new = jnp.where(ok, p - 0.01 * g32, p)
        grown = jnp.where(good >= 5, scale * 2, scale)
        return new, jnp.where(ok, grown, jnp.maximum(scale / 2, 1.0)), jnp.where(ok, good + 1, 0)

    return Program(f, (floats(n), floats(n, dtype="float16"), positive(), integers()))


@family
def dropout_hash(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)
    keep = rng.choice([0.5, 0.9])

    def f(x, seed):
        i = lax.broadcasted_iota(jnp.uint32, (n, m), 0) * jnp.uint32(m) + lax.broadcasted_iota(
            jnp.uint32, (n, m), 1
        )
        h = (i + seed) * jnp.uint32(2654435761)
        h = h ^ (h >> 15)
        h = h * jnp.uint32(0x85EBCA6B)
        h = h ^ (h >> 13)
        u = (h >> 8).astype(jnp.float32) / (1 << 24)
        return jnp.where(u < keep, x / keep, 0.0)

    return Program(f, (floats(n, m), integers(dtype="uint32")))


@family
def conv_pool(rng: random.Random) -> Program:
    c, k = rng.choice([1, 2, 3]), rng.choice([2, 3])
    padding = rng.choice(["SAME", "VALID"])

    def f(x, w):
        y = lax.conv_general_dilated(x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

    return Program(f, (floats(1, 6, 6, c), floats(3, 3, c, k)))


@family
def avg_pool_grad(rng: random.Random) -> Program:
    n = rng.choice([6, 7, 9])

    def f(x, g):
        def pool(x):
            return lax.reduce_window(x, 0.0, lax.add, (3, 3), (2, 2), "SAME") / 9.0

        y, back = jax.vjp(pool, x)
        return y, back(g[: y.shape[0], : y.shape[1]])[0]

    return Program(f, (floats(n, n), floats(n, n)))


@family
def embedding_grad(rng: random.Random) -> Program:
    v, d, n = rng.choice([5, 8, 11]), rng.choice([3, 4]), rng.choice([4, 6, 9])

    def f(table, ids, g):
        rows = table[ids]
        grad = jnp.zeros_like(table).at[ids].add(g)
        return rows, grad

    return Program(f, (floats(v, d), index(v, n), floats(n, d)))


@family
def lstm_scan(rng: random.Random) -> Program:
    t, b, h = rng.choice([3, 5]), 2, rng.choice([3, 4])

    def f(xs, w, u, b0):
        def step(carry, x):
            c, hh = carry
            z = x @ w + hh @ u + b0
            i, g, o, q = jnp.split(z, 4, axis=-1)
            c = jax.nn.sigmoid(q + 1.0) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            hh = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (c, hh), hh

        start = (jnp.zeros((b, h)), jnp.zeros((b, h)))
        (c, _), ys = lax.scan(step, start, xs)
        return c, ys

    return Program(f, (floats(t, b, h), floats(h, 4 * h), floats(h, 4 * h), floats(4 * h)))


@family
def rope(rng: random.Random) -> Program:
    s, d = rng.choice([4, 6]), rng.choice([4, 8])

    def f(x, start):
        pos = (jnp.arange(s) + start).astype(jnp.float32)
        freq = 10000.0 ** (-jnp.arange(0, d, 2) / d)
        a = pos[:, None] * freq
        x1, x2 = x[:, ::2], x[:, 1::2]
        return jnp.stack([x1 * jnp.cos(a) - x2 * jnp.sin(a), x1 * jnp.sin(a) + x2 * jnp.cos(a)], -1).reshape(
            s, d
        )

    return Program(f, (floats(s, d), index(64)))


@family
def kv_cache(rng: random.Random) -> Program:
    s, d = rng.choice([6, 8]), rng.choice([3, 4])

    def f(cache, new, pos, q):
        cache = lax.dynamic_update_slice(cache, new[None], (pos, 0))
        logits = cache @ q
        logits = jnp.where(jnp.arange(s) <= pos, logits, -1e9)
        return cache, jax.nn.softmax(logits) @ cache

    return Program(f, (floats(s, d), floats(d), index(s), floats(d)))


@family
def moe_top1(rng: random.Random) -> Program:
    n, e, d = rng.choice([5, 6]), rng.choice([3, 4]), 3

    def f(x, router, experts):
        gate = jax.nn.softmax(x @ router)
        choice = jnp.argmax(gate, -1)
        weight = jnp.take_along_axis(gate, choice[:, None], -1)
        counts = jnp.zeros((e,), jnp.int32).at[choice].add(1)
        y = jnp.einsum("nd,ndk->nk", x, experts[choice])
        return y * weight, counts

    return Program(f, (floats(n, d), floats(d, e), floats(e, d, d)))


@family
def contrastive(rng: random.Random) -> Program:
    n, d = rng.choice([4, 5]), rng.choice([3, 6])
    tau = rng.choice([0.1, 0.5])

    def f(a, b):
        a = a / jnp.maximum(jnp.linalg.norm(a, axis=-1, keepdims=True), 1e-6)
        b = b / jnp.maximum(jnp.linalg.norm(b, axis=-1, keepdims=True), 1e-6)
        s = a @ b.T / tau
        return -(jnp.diag(s) - jax.scipy.special.logsumexp(s, axis=1)).mean()

    return Program(f, (floats(n, d), floats(n, d)))


@family
def mixed_precision_step(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)

    def f(w, x, y):
        def loss(w):
            z = x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)
            e = z.astype(jnp.float32) - y
            return (e * e).mean()

        value, g = jax.value_and_grad(loss)(w)
        return w - 0.05 * g, value

    return Program(f, (floats(m), floats(n, m), floats(n)))


@family
def ema_schedule(rng: random.Random) -> Program:
    warm = rng.choice([10, 100, 1000])

    def f(ema, p, step):
        s = step.astype(jnp.float32)
        lr = jnp.where(
            step < warm, s / warm, 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum((s - warm) / 1000, 1.0)))
        )
        decay = jnp.minimum(0.999, (1 + s) / (10 + s))
        return ema * decay + p * (1 - decay), lr

    return Program(f, (floats(5), floats(5), count()))
