"""Sorting, gathering, scattering, integers and bits; programs on four devices."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.adversary.drawn import Program, count, family, floats, index, integers, positive


def _n(rng: random.Random) -> int:
    return rng.choice([4, 5, 6, 8, 9, 13, 17, 24])


@family
def sort_pairs(rng: random.Random) -> Program:
    n = _n(rng)

    def f(k, v):
        a, b = lax.sort((k, v), num_keys=1, is_stable=True)
        return a, b, jnp.argsort(v, stable=True)

    return Program(f, (floats(n) if rng.random() < 0.5 else integers(n), floats(n)))


@family
def top_k(rng: random.Random) -> Program:
    n, m = rng.choice([3, 4]), rng.choice([6, 9])
    k = rng.choice([1, 2, 3])

    def f(x, w):
        values, where = lax.top_k(x, k)
        return jax.nn.softmax(values), where, w[where]

    return Program(f, (floats(n, m), floats(m)))


@family
def arg_extremes(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, k):
        return jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(k), x.max(0), k.min()

    return Program(f, (floats(n, n), integers(n)))


@family
def median_quantile(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, q):
        s = jnp.sort(x)
        p = q * (n - 1)
        i = jnp.floor(p).astype(jnp.int32)
        t = p - i
        return s[i] * (1 - t) + s[jnp.minimum(i + 1, n - 1)] * t, s[n // 2]

    return Program(f, (floats(n), floats()))


@family
def segment_sum(rng: random.Random) -> Program:
    n, s = _n(rng), rng.choice([3, 4])

    def f(x, ids):
        total = jax.ops.segment_sum(x, ids, s)
        size = jax.ops.segment_sum(jnp.ones_like(x), ids, s)
        return total / jnp.maximum(size, 1), jax.ops.segment_max(x, ids, s)

    return Program(f, (floats(n), index(s, n)))


@family
def sorted_segments(rng: random.Random) -> Program:
    n, s = _n(rng), rng.choice([3, 5])

    def f(x, ids):
        order = jnp.argsort(ids)
        return jax.ops.segment_sum(x[order], ids[order], s, indices_are_sorted=True)

    return Program(f, (floats(n, 2), index(s, n)))


@family
def histogram(rng: random.Random) -> Program:
    n, b = _n(rng), rng.choice([4, 8])

    def f(x):
        i = jnp.clip(jnp.floor((x + 2) / 4 * b).astype(jnp.int32), 0, b - 1)
        h = jnp.zeros((b,), jnp.int32).at[i].add(1)
        return h, jnp.cumsum(h)

    return Program(f, (floats(n),))


@family
def gather_rows(rng: random.Random) -> Program:
    n, m, k = _n(rng), rng.choice([3, 4]), rng.choice([3, 5])
    mode = rng.choice(["clip", "fill"])

    def f(x, i, j):
        return jnp.take(x, i, axis=0, mode=mode), x[i, j], jnp.take_along_axis(x, j[None, :] % m, axis=1)

    return Program(f, (floats(n, m), index(n, k), index(m, k)))


@family
def scatter_modes(rng: random.Random) -> Program:
    n, k = _n(rng), rng.choice([3, 5])

    def f(x, i, u):
        return (
            x.at[i].set(u, mode="drop"),
            x.at[i].max(u),
            x.at[i].multiply(u),
            x.at[i].add(u, unique_indices=False),
        )

    return Program(f, (floats(n), index(n, k), floats(k)))


@family
def unique_scatter(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, k):
        order = jnp.argsort(k)
        return jnp.zeros_like(x).at[order].set(x, unique_indices=True), order

    return Program(f, (floats(n), integers(n)))


@family
def dynamic_slices(rng: random.Random) -> Program:
    n, m = _n(rng), rng.choice([4, 6])
    w = rng.choice([2, 3])

    def f(x, i, j, u):
        a = lax.dynamic_slice(x, (i, j), (w, 2))
        b = lax.dynamic_update_slice(x, u, (j, i))
        return a, b, lax.dynamic_index_in_dim(x, i, 0, keepdims=False)

    return Program(f, (floats(n, m), index(n - w + 1), index(m - 1), floats(2, 2)))


@family
def ring_buffer(rng: random.Random) -> Program:
    n = rng.choice([4, 8, 6])

    def f(buf, pos, xs):
        def step(s, x):
            b, p = s
            b = b.at[p % n].set(x)
            return (b, p + 1), b.sum()

        return lax.scan(step, (buf, pos), xs)

    return Program(f, (floats(n), index(64), floats(3)))


@family
def in_place_two(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x, i, v):
        def step(k, s):
            a, b = s
            t = a[k % n]
            a = a.at[(k + i) % n].set(b[k % n])
            b = b.at[k % n].set(t * v)
            return a, b

        a, b = lax.fori_loop(0, 5, step, (x, x * 2))
        return a, b, x + a

    return Program(f, (floats(n), index(n), floats()))


@family
def swap_carry(rng: random.Random) -> Program:
    n = _n(rng)

    def f(a, b, k):
        return lax.fori_loop(0, k, lambda i, s: (s[1], s[0] + s[1] * 0.5), (a, b))

    return Program(f, (floats(n), floats(n), count()))


@family
def fib_mod(rng: random.Random) -> Program:
    mod = rng.choice([97, 251, 1000])

    def f(k, a, b):
        return lax.fori_loop(0, jnp.minimum(k, 50), lambda i, s: (s[1], (s[0] + s[1]) % mod), (a, b))

    return Program(f, (count(), integers(), integers()))


@family
def bit_tricks(rng: random.Random) -> Program:
    n = _n(rng)
    dtype = rng.choice(["int32", "uint32", "int16"])

    def f(x, y):
        return (
            (x & -x),
            (x ^ (x >> 1)),
            x << (y & 7),
            lax.shift_right_logical(x, y),
            lax.shift_right_arithmetic(x, y),
            lax.population_count(x),
            lax.clz(x),
            x << y,
        )

    return Program(f, (integers(n, dtype=dtype), integers(n, dtype=dtype)))


@family
def fnv_hash(rng: random.Random) -> Program:
    n = _n(rng)

    def f(data, seed):
        def step(h, b):
            h = (h ^ b.astype(jnp.uint32)) * jnp.uint32(16777619)
            return h, h >> 16

        return lax.scan(step, seed, data)

    return Program(f, (integers(n, dtype="uint8"), integers(dtype="uint32")))


@family
def integer_division(rng: random.Random) -> Program:
    n = _n(rng)
    d = rng.choice([3, 7, 10])

    def f(a, b):
        b = jnp.where(b == 0, 1, b)
        return a // b, a % b, lax.rem(a, b), lax.div(a, b), a // d, (a + d - 1) % d

    return Program(f, (integers(n), integers(n)))


@family
def fixed_point(rng: random.Random) -> Program:
    n = _n(rng)
    bits = rng.choice([8, 12])

    def f(a, b):
        wide = (a.astype(jnp.int32) * b.astype(jnp.int32) + (1 << (bits - 1))) >> bits
        return jnp.clip(wide, -32768, 32767).astype(jnp.int16), (a.astype(jnp.int32) - b).astype(jnp.int8)

    return Program(f, (integers(n, dtype="int16"), integers(n, dtype="int16")))


@family
def pack_bytes(rng: random.Random) -> Program:
    n = _n(rng)

    def f(b, x):
        w = b.astype(jnp.uint32)
        packed = w[:, 0] | (w[:, 1] << 8) | (w[:, 2] << 16) | (w[:, 3] << 24)
        bits = lax.bitcast_convert_type(x, jnp.uint32)
        return packed, (bits >> 23) & 0xFF, bits >> 31, lax.bitcast_convert_type(packed, jnp.int32)

    return Program(f, (integers(n, 4, dtype="uint8"), floats(n)))


@family
def saturating(rng: random.Random) -> Program:
    n = _n(rng)

    def f(a, b):
        s = a + b
        over = ((a ^ s) & (b ^ s)) < 0
        return jnp.where(over, jnp.where(a < 0, jnp.int32(-(2**31)), jnp.int32(2**31 - 1)), s), over.sum()

    return Program(f, (integers(n), integers(n)))


@family
def masks_padding(rng: random.Random) -> Program:
    n, m = rng.choice([4, 5, 6]), rng.choice([4, 6])

    def f(x, length):
        m_ = jnp.arange(n)[:, None] < length
        y = jnp.where(m_, x, -jnp.inf).max(0)
        return (
            jnp.where(jnp.isfinite(y), y, 0.0),
            jnp.pad(x, ((1, 2), (0, 1)), constant_values=0.5).sum(1),
            jnp.triu(x[:, :n], 1),
        )

    return Program(f, (floats(n, m), index(n + 1)))


@family
def run_lengths(rng: random.Random) -> Program:
    n = _n(rng)

    def f(x):
        new = jnp.concatenate([jnp.array([True]), x[1:] != x[:-1]])
        ids = jnp.cumsum(new) - 1
        return jnp.zeros((n,), jnp.int32).at[ids].add(1), ids[-1] + 1

    return Program(f, (index(3, n),))


@family
def nms(rng: random.Random) -> Program:
    n = rng.choice([4, 6])
    thr = rng.choice([0.3, 0.5])

    def f(lo, size, score):
        hi = lo + size
        inter = jnp.maximum(jnp.minimum(hi[:, None], hi[None]) - jnp.maximum(lo[:, None], lo[None]), 0)
        iou = inter / jnp.maximum(size[:, None] + size[None] - inter, 1e-9)
        order = jnp.argsort(-score)

        def step(i, keep):
            j = order[i]
            over = (iou[j] > thr) & (jnp.arange(n) != j) & keep[j] & (score < score[j])
            return keep & ~over

        return lax.fori_loop(0, n, step, jnp.ones((n,), bool))

    return Program(f, (floats(n), positive(n), floats(n)))


@family
def viterbi(rng: random.Random) -> Program:
    t, s = rng.choice([3, 5]), rng.choice([3, 4])

    def f(logp, trans):
        def step(a, e):
            m = a[:, None] + trans
            return m.max(0) + e, m.argmax(0)

        a, back = lax.scan(step, logp[0], logp[1:])

        def walk(k, b):
            k = b[k]
            return k, k

        last = a.argmax()
        _, path = lax.scan(walk, last, back, reverse=True)
        return a.max(), path, last

    return Program(f, (floats(t, s), floats(s, s)))


@family
def edit_distance(rng: random.Random) -> Program:
    n, m = rng.choice([3, 5]), rng.choice([4, 6])

    def f(a, b):
        def row(prev, ca):
            def cell(left, x):
                up, diag, cb = x
                v = jnp.minimum(jnp.minimum(up, left) + 1, diag + (ca != cb))
                return v, v

            first = prev[0] + 1
            _, rest = lax.scan(cell, first, (prev[1:], prev[:-1], b))
            new = jnp.concatenate([first[None], rest])
            return new, ()

        return lax.scan(row, jnp.arange(m + 1), a)[0]

    return Program(f, (index(3, n), index(3, m)))


@family
def transpose_mix(rng: random.Random) -> Program:
    n = rng.choice([3, 4, 5])

    def f(a, b):
        c = jnp.einsum("ijk,kj->ik", a, b)
        return (
            c - c.T,
            jnp.transpose(a, (1, 0, 2)).sum(0),
            jnp.flip(b, 0) + b[:, ::-1],
            jnp.tensordot(a, b, ((1,), (0,))),
        )

    return Program(f, (floats(n, n, n), floats(n, n)))


@family
def roll_concat(rng: random.Random) -> Program:
    n = _n(rng)
    k = rng.choice([1, 2, 3])

    def f(x, s):
        return (
            jnp.roll(x, k),
            jnp.concatenate([x[k:], x[:k] * 2]),
            jnp.roll(x, s),
            x[::-2],
            jnp.repeat(x, 2)[1:-1],
        )

    return Program(f, (floats(n), index(n)))


@family
def highest_dot(rng: random.Random) -> Program:
    n, m = _n(rng), _n(rng)

    def f(a, b):
        return lax.dot(a, b, precision=lax.Precision.HIGHEST), lax.dot(a, b, precision=rng_precision)

    rng_precision = rng.choice([lax.Precision.HIGH, lax.Precision.HIGHEST])
    return Program(f, (floats(n, m), floats(m, n)))


@family
def double_words(rng: random.Random) -> Program:
    n = _n(rng)

    def f(a, b):
        s = a + b
        bb = s - a
        e = (a - (s - bb)) + (b - bb)
        return s, e

    return Program(f, (floats(n), floats(n)))


def _shard_map(f, mesh, ins, outs):
    try:
        from jax import shard_map

        return shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs)
    except ImportError:
        from jax.experimental.shard_map import shard_map

        return shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs)


def _mesh(*dims: int):
    return jax.sharding.Mesh(np.array(jax.devices()[:4]).reshape(dims), ("i", "j")[: len(dims)])


@family
def devices_psum(rng: random.Random) -> Program:
    n, m = 8, rng.choice([3, 4])
    from jax.sharding import PartitionSpec as P

    def f(x, w):
        def part(x, w):
            y = jnp.tanh(x @ w)
            return y / lax.psum(jnp.abs(y).sum(), "i"), lax.pmax(y.max(), "i")

        return _shard_map(part, _mesh(4), (P("i"), P()), (P("i"), P()))(x, w)

    return Program(f, (floats(n, m), floats(m, m)), devices=4)


@family
def devices_ring(rng: random.Random) -> Program:
    n, s = 8, rng.choice([1, 3])
    from jax.sharding import PartitionSpec as P

    def f(x):
        def part(x):
            left = lax.ppermute(x, "i", [(k, (k + s) % 4) for k in range(4)])
            return left * 0.5 + x, lax.all_gather(x.sum(), "i").sum()[None]

        return _shard_map(part, _mesh(4), (P("i"),), (P("i"), P("i")))(x)

    return Program(f, (floats(n, 3),), devices=4)


@family
def devices_grid(rng: random.Random) -> Program:
    from jax.sharding import PartitionSpec as P

    def f(x, y):
        def part(x, y):
            a = lax.psum(x, "i")
            b = lax.psum_scatter(y, "j", scatter_dimension=0, tiled=True)
            k = lax.axis_index("j")
            return a + k, b

        return _shard_map(part, _mesh(2, 2), (P("i", "j"), P("i", "j")), (P(None, "j"), P(("i", "j"), None)))(
            x, y
        )

    return Program(f, (floats(4, 6), floats(8, 4)), devices=4)


@family
def devices_transpose(rng: random.Random) -> Program:
    from jax.sharding import PartitionSpec as P

    def f(x):
        def part(x):
            return lax.all_to_all(x, "i", split_axis=1, concat_axis=0, tiled=True)

        return _shard_map(part, _mesh(4), (P("i"),), P("i"))(x)

    return Program(f, (floats(8, 8),), devices=4)
