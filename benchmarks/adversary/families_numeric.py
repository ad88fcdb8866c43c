"""Numerical programs: loops, linear algebra, sums, special functions."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.adversary.drawn import Program, count, family, floats, index, integers, positive, preds


def _n(rng: random.Random) -> int:
    return rng.choice([3, 4, 5, 6, 8, 9, 13, 16])


@family
def power_iteration(rng: random.Random) -> Program:
    n, steps = rng.choice([3, 4, 5]), rng.choice([3, 5])
    eps = rng.choice([1e-6, 1e-8])

    def f(a, v):
        def step(_, v):
            w = a @ v
            return w / (jnp.linalg.norm(w) + eps)

        v = lax.fori_loop(0, steps, step, v)
        return v, v @ (a @ v)

    return Program(f, (floats(n, n), floats(n)))


@family
def newton_sqrt(rng: random.Random) -> Program:
    tol = rng.choice([1e-3, 1e-5])

    def f(x):
        def cond(s):
            y, i = s
            return jnp.logical_and(jnp.abs(y * y - x) > tol * x, i < 30)

        return lax.while_loop(cond, lambda s: (0.5 * (s[0] + x / s[0]), s[1] + 1), (x * 0.5 + 0.5, 0))

    return Program(f, (positive(),))


@family
def counted_loop(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, k):
        return lax.fori_loop(0, k, lambda i, s: s * 0.5 + i, x), k * 2

    return Program(f, (floats(n), count(rng.choice(["int32", "int32", "uint8", "int16"]))))


@family
def collatz(rng: random.Random) -> Program:
    cap = rng.choice([20, 40])

    def f(n):
        def step(s):
            n, c = s
            return lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), c + 1

        return lax.while_loop(lambda s: (s[0] > 1) & (s[1] < cap), step, (n, 0))

    return Program(f, (integers(),))


@family
def gcd(rng: random.Random) -> Program:
    def f(a, b):
        a, b = jnp.abs(a), jnp.abs(b)
        return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]

    return Program(f, (integers(), integers()))


@family
def early_exit_scan(rng: random.Random) -> Program:
    n = _n(rng)
    limit = rng.choice([2.0, 5.0])

    def f(xs):
        def step(s, x):
            total, done = s
            total = jnp.where(done, total, total + x)
            done = done | (total >= limit)
            return (total, done), (total, done)

        return lax.scan(step, (jnp.float32(0), False), xs)

    return Program(f, (floats(n),))


@family
def kahan(rng: random.Random) -> Program:
    n = rng.choice([8, 16, 33])

    def f(xs):
        def step(s, x):
            total, c = s
            y = x - c
            t = total + y
            return (t, (t - total) - y), ()

        return lax.scan(step, (jnp.float32(0), jnp.float32(0)), xs)[0]

    return Program(f, (floats(n),))


@family
def welford(rng: random.Random) -> Program:
    n = _n(rng)

    def f(xs):
        def step(s, x):
            k, m, q = s
            k = k + 1
            d = x - m
            m = m + d / k
            return (k, m, q + d * (x - m)), m

        (k, m, q), ms = lax.scan(step, (0.0, 0.0, 0.0), xs)
        return m, q / jnp.maximum(k - 1, 1), ms

    return Program(f, (floats(n),))


@family
def covariance(rng: random.Random) -> Program:
    n, d = _n(rng), rng.choice([2, 3, 4])

    def f(x):
        c = x - x.mean(0)
        return c.T @ c / (n - 1)

    return Program(f, (floats(n, d),))


@family
def quad_form(rng: random.Random) -> Program:
    n = rng.choice([3, 4, 6])

    def f(x, a, b):
        return jnp.expm1(x @ a @ x * 1e-3), jnp.log1p(jnp.abs(b @ x)), jnp.sinh(x)

    return Program(f, (floats(n), floats(n, n), floats(n)))


@family
def distances(rng: random.Random) -> Program:
    n, m, d = rng.choice([4, 5]), rng.choice([4, 6]), rng.choice([2, 3])

    def f(x, y):
        q = ((x[:, None] - y[None]) ** 2).sum(-1)
        d = jnp.sqrt(jnp.maximum(q, 1e-12))
        return d, d.argmin(1), jnp.exp(-0.5 * q)

    return Program(f, (floats(n, d), floats(m, d)))


@family
def logsumexp_pair(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)

    def f(x, y):
        return jax.scipy.special.logsumexp(x, axis=-1), jnp.logaddexp(x[:, 0], y), jax.nn.softplus(y)

    return Program(f, (floats(n, m), floats(n)))


@family
def masked_log(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, y):
        safe = jnp.where(x > 0, x, 1.0)
        return jnp.where(x > 0, jnp.log(safe), -100.0), jnp.where(y != 0, x / jnp.where(y != 0, y, 1.0), 0.0)

    return Program(f, (floats(n), floats(n)))


@family
def cumulative(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, k):
        return jnp.cumsum(x, axis=0), jnp.cumprod(x, axis=1), lax.cummax(x, axis=0), jnp.cumsum(k[::-1])[::-1]

    return Program(f, (floats(n, n), integers(n)))


@family
def associative(rng: random.Random) -> Program:
    n = rng.choice([5, 8, 11])

    def f(a, b):
        return lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b))

    return Program(f, (floats(n), floats(n)))


@family
def interpolate(rng: random.Random) -> Program:
    n, m = _n(rng), rng.choice([4, 7])

    def f(x, fp):
        xp = jnp.linspace(-1.0, 1.0, m)
        i = jnp.clip(jnp.searchsorted(xp, x, side="right"), 1, m - 1)
        t = (x - xp[i - 1]) / (xp[i] - xp[i - 1])
        return jnp.where(x < xp[0], fp[0], jnp.where(x > xp[-1], fp[-1], fp[i - 1] * (1 - t) + fp[i] * t))

    return Program(f, (floats(n), floats(m)))


@family
def bilinear(rng: random.Random) -> Program:
    h, n = rng.choice([4, 5]), rng.choice([3, 6])

    def f(img, yx):
        y, x = yx[:, 0], yx[:, 1]
        y0, x0 = jnp.floor(y), jnp.floor(x)
        wy, wx = y - y0, x - x0
        yi, xi = y0.astype(jnp.int32), x0.astype(jnp.int32)

        def at(a, b):
            return img[jnp.clip(a, 0, h - 1), jnp.clip(b, 0, h - 1)]

        top = at(yi, xi) * (1 - wx) + at(yi, xi + 1) * wx
        low = at(yi + 1, xi) * (1 - wx) + at(yi + 1, xi + 1) * wx
        return top * (1 - wy) + low * wy

    return Program(f, (floats(h, h), floats(n, 2)))


@family
def complex_mix(rng: random.Random) -> Program:
    n = rng.choice([3, 4, 6])

    def f(a, b, c, d):
        z, w = lax.complex(a, b), lax.complex(c, d)
        inner = (jnp.conj(z) * w).sum()
        return jnp.abs(z), inner.real, inner.imag, (z * w).imag, jnp.angle(w)

    return Program(f, (floats(n), floats(n), floats(n), floats(n)))


@family
def dft(rng: random.Random) -> Program:
    n = rng.choice([4, 6, 8])
    fft = rng.random() < 0.5

    def f(x):
        if fft:
            y = jnp.fft.fft(x)
            return y.real, jnp.fft.ifft(y * jnp.conj(y)).real
        k = jnp.arange(n)
        a = -2 * jnp.pi * jnp.outer(k, k) / n
        return jnp.cos(a) @ x, jnp.sin(a) @ x

    return Program(f, (floats(n),))


@family
def cholesky_solve(rng: random.Random) -> Program:
    n = rng.choice([3, 4])

    def f(a, b):
        m = a @ a.T + 0.1 * jnp.eye(n)
        low = jnp.linalg.cholesky(m)
        y = jax.scipy.linalg.solve_triangular(low, b, lower=True)
        return y, 2 * jnp.log(jnp.diag(low)).sum()

    return Program(f, (floats(n, n), floats(n)))


@family
def rounding_modes(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, s):
        q = jnp.round(x / s)
        return q * s, jnp.floor(x), jnp.ceil(x), x.astype(jnp.int32), jnp.trunc(x)

    return Program(f, (floats(n), positive()))


@family
def quantise(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)

    def f(x, w):
        scale = jnp.maximum(jnp.abs(x).max(-1, keepdims=True) / 127.0, 1e-8)
        q = jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8)
        acc = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        return q, acc.astype(jnp.float32) * scale

    return Program(f, (floats(n, m), integers(m, n, dtype="int8")))


@family
def fake_quant(rng: random.Random) -> Program:
    n = _n(rng)
    e, m = rng.choice([(5, 10), (8, 7), (4, 3)])

    def f(x, y):
        r = lax.reduce_precision(x, e, m)
        return r * y, (x - r).sum()

    return Program(f, (floats(n), floats(n)))


@family
def half_sum(rng: random.Random) -> Program:
    n = rng.choice([16, 64, 128])

    def f(x, y):
        return x.astype(jnp.float32).sum(), jnp.dot(x, y, preferred_element_type=jnp.float32), (x * y).max()

    return Program(f, (floats(n, dtype="float16"), floats(n, dtype="float16")))


@family
def clip_everything(rng: random.Random) -> Program:
    n = _n(rng)
    lo, hi = rng.choice([(-1.0, 1.0), (0.0, 6.0), (-3.0, 2.5)])

    def f(x, k, lim):
        return (
            jnp.clip(x, lo, hi),
            lax.clamp(-lim, x, lim),
            jnp.minimum(jnp.maximum(k, -100), 100),
            jax.nn.hard_swish(x),
        )

    return Program(f, (floats(n), integers(n), positive()))


@family
def finite_checks(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, y):
        z = jnp.exp(x) / y
        return (
            jnp.where(jnp.isfinite(z), z, 0.0),
            jnp.isnan(z).any(),
            jnp.nan_to_num(z, posinf=9.0, neginf=-9.0),
            jnp.isinf(x).sum(),
        )

    return Program(f, (floats(n), floats(n)))


@family
def branches(rng: random.Random) -> Program:
    n = _n(rng)

    def f(i, x):
        fs = [lambda v: v * 2, lambda v: v - 1, lambda v: jnp.sin(v), lambda v: -v]
        return lax.switch(i, fs, x), lax.cond(x[0] > 0, lambda v: v.sum(), lambda v: v.max(), x)

    return Program(f, (index(4), floats(n)))


@family
def heun_ode(rng: random.Random) -> Program:
    steps, h = rng.choice([4, 8]), rng.choice([0.1, 0.05])

    def f(y, mu):
        def rhs(y):
            return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

        def step(y, _):
            k = rhs(y)
            k2 = rhs(y + h * k)
            y = y + h / 2 * (k + k2)
            return y, y

        return lax.scan(step, y, None, length=steps)

    return Program(f, (floats(2), floats()))


@family
def stencil(rng: random.Random) -> Program:
    n = rng.choice([5, 6, 8])
    c = rng.choice([0.1, 0.25])

    def f(u):
        def step(_, u):
            lap = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u
            return u + c * lap

        return lax.fori_loop(0, 3, step, u)

    return Program(f, (floats(n, n),))


@family
def horner(rng: random.Random) -> Program:
    n, d = _n(rng), rng.choice([4, 6])
    coefs = [rng.uniform(-2, 2) for _ in range(d)]

    def f(x):
        y = jnp.full_like(x, coefs[0])
        for c in coefs[1:]:
            y = y * x + c
        return y, jnp.tanh(y), jnp.arctan2(y, x + 1.5)

    return Program(f, (floats(n, dtype="float32"),))


@family
def ucb_bandit(rng: random.Random) -> Program:
    n = _n(rng)

    def f(mean, visits, t, reward):
        bonus = jnp.where(
            visits > 0, jnp.sqrt(2 * jnp.log(jnp.maximum(t, 1.0)) / jnp.maximum(visits, 1)), jnp.inf
        )
        a = jnp.argmax(mean + bonus)
        v = visits.at[a].add(1)
        return a, v, mean.at[a].add((reward - mean[a]) / v[a])

    return Program(f, (floats(n), index(20, n), positive(), floats()))


@family
def gae(rng: random.Random) -> Program:
    n = _n(rng)
    gamma, lam = rng.choice([0.99, 0.9]), 0.95

    def f(r, v, done, last):
        nv = jnp.concatenate([v[1:], last[None]])
        delta = r + gamma * nv * (1 - done) - v

        def step(a, x):
            d, t = x
            a = d + gamma * lam * (1 - t) * a
            return a, a

        _, adv = lax.scan(step, jnp.float32(0), (delta, done.astype(jnp.float32)), reverse=True)
        return (adv - adv.mean()) / (adv.std() + 1e-8), adv + v

    return Program(f, (floats(n), floats(n), preds(n), floats()))


@family
def ppo_clip(rng: random.Random) -> Program:
    n = _n(rng)
    eps = rng.choice([0.1, 0.2])

    def f(lp, old, adv, mask):
        ratio = jnp.exp(jnp.clip(lp - old, -20, 20))
        obj = jnp.minimum(ratio * adv, jnp.clip(ratio, 1 - eps, 1 + eps) * adv)
        m = mask.astype(jnp.float32)
        return -(obj * m).sum() / jnp.maximum(m.sum(), 1.0), ((jnp.abs(ratio - 1) > eps) * m).sum()

    return Program(f, (floats(n), floats(n), floats(n), preds(n)))
