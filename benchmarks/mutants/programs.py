"""Programs for `benchmarks.mutants`, made at random of what people write: every idiom decides something.

A program takes a vector of floats, a matrix, a vector of integers, two scalar integers and a threshold, and
runs a few idioms one after the other, each on what the ones before it returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Idioms of one program.
_LEAST, _MOST = 2, 5

#: Sizes of the vectors.
_SIZES = (4, 5, 7, 8, 12)


@dataclass(frozen=True, slots=True)
class Generated:
    """A program as the frontend gives it and as XLA's CPU compiler leaves it.

    Attributes:
        name: with its idioms.
        before: HLO text.
        after: HLO text.
    """

    name: str
    before: str
    after: str


def generated_programs(count: int, seed: int) -> Iterator[Generated]:
    """Programs that depend on the seed only."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        size = int(rng.choice(_SIZES))
        idioms = _idioms()
        chosen = [idioms[int(n)] for n in rng.choice(len(idioms), int(rng.integers(_LEAST, _MOST + 1)))]
        salts = [int(n) for n in rng.integers(1, 5, len(chosen))]

        def program(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any) -> Any:
            state = x, m, n
            for idiom, salt in zip(chosen, salts):  # noqa: B023
                state = idiom(*state, i, k, limit, salt)
            return state

        arguments = (
            _array(size), _array(size, 3), _array(size, dtype="int32"), _array(dtype="int32"),
            _array(dtype="int32"), _array(),
        )  # fmt: skip
        lowered = jax.jit(program).lower(*arguments)
        before = lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)
        names = "+".join(idiom.__name__ for idiom in chosen)
        yield Generated(f"generated/{seed}.{number} {names}", before, lowered.compile().as_text())


def _array(*dims: int, dtype: str = "float32") -> Any:
    import jax

    return jax.ShapeDtypeStruct(dims, dtype)


def _idioms() -> list[Callable[..., Any]]:
    import jax
    import jax.numpy as jnp
    from jax import lax

    def leaky(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return jnp.where(x > limit, x, x * 0.1 * salt), m, n

    def hinge(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return jnp.maximum(0.0, 1 - x * salt), m, n

    def clipped(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, jnp.clip(m * salt, -2.0, 2.5), jnp.clip(n, -3, 6)

    def bins(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m, n // (salt + 1) + n % (salt + 2)

    def quotients(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m, lax.div(n, lax.max(jnp.abs(k), 1)) - lax.rem(n, lax.full_like(n, salt + 2))

    def window(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        part = lax.dynamic_slice(x, (i * salt,), (2,))
        return x + part.sum(), lax.dynamic_update_slice(m, m[:2] * 2, (k, 0)), n

    def take(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x[n], m, n

    def rows(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, jnp.take(m, n, axis=0, mode="clip"), n

    def add_at(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m.at[n].add(1.5 * salt), n

    def set_at(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x.at[i].set(float(salt)), m, n

    def count_up(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return lax.fori_loop(0, k, lambda t, y: y * 0.5 + t * salt, x), m, n

    def until(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        y, _ = lax.while_loop(
            lambda s: (jnp.sum(s[0] ** 2) > 1.0 + limit**2) & (s[1] < 20),
            lambda s: (s[0] * 0.7, s[1] + 1),
            (x, 0),
        )
        return y, m, n

    def branch(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return lax.cond(jnp.max(x) > limit + salt, lambda y: y - 1.0, lambda y: y * 2.0, x), m, n

    def switch(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        ways = [lambda v: v, lambda v: v * 3.0, lambda v: v + 5.0, jnp.negative]
        return x, lax.switch(i, ways[: 2 + salt % 3], m), n

    def best(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m, n + jnp.argmax(x) - jnp.argmin(n)

    def order(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        keys, values = lax.sort((n, x), num_keys=1)
        return values, m, keys

    def ranks(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m, jnp.argsort(x).astype(jnp.int32) + n

    def one_hot(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m + jax.nn.one_hot(n, 3), n

    def mask(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return jnp.where(jnp.arange(x.shape[0]) <= i, x, -1.0 * salt), m, n

    def truncated(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m, n + (x * salt * 4).astype(jnp.int32)

    def narrow(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m, (n * salt).astype(jnp.int8).astype(jnp.int32)

    def bits(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return x, m, (n >> salt) ^ (n & 7)

    def safe(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return jnp.where(x == 0, 0.0, 1.0 / jnp.where(x == 0, 1.0, x)), m, n

    def finite(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return jnp.where(jnp.isfinite(x), jnp.exp(x), 0.0), m, n

    def soft(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return jax.nn.softmax(x) * salt, jax.nn.logsumexp(m, axis=1, keepdims=True) + m, n

    def running(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return jnp.cumsum(x), lax.cummax(m, axis=0), n

    def product(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        return m @ (m.T @ x) / salt, m, n

    def largest(x: Any, m: Any, n: Any, i: Any, k: Any, limit: Any, salt: int) -> Any:
        values, places = lax.top_k(x, 2)
        return x * values[0], m, n + places[1].astype(jnp.int32)

    return [
        leaky, hinge, clipped, bins, quotients, window, take, rows, add_at, set_at, count_up, until, branch,
        switch, best, order, ranks, one_hot, mask, truncated, narrow, bits, safe, finite, soft, running,
        product, largest,
    ]  # fmt: skip
