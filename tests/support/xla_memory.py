"""JAX programs compiled by real XLA, with what it allocates for them; runs in the process that holds XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def programs() -> dict[str, Callable[[], Any]]:
    """By name, functions that return a compiled program."""
    import jax
    import jax.numpy as jnp

    ones = jnp.ones

    def deep(weights: list[Any], x: Any) -> Any:
        def loss(weights: list[Any]) -> Any:
            h = x
            for w in weights:
                h = jnp.tanh(h @ w)
            return jnp.sum(h)

        return jax.tree.map(lambda w, d: w - 0.1 * d, weights, jax.grad(loss)(weights))

    def scanned(weights: Any, x: Any) -> Any:
        return jnp.sum(jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), jnp.sum(h)), x, weights)[0])

    def updated(x: Any) -> Any:
        return jax.lax.fori_loop(0, 10, lambda i, x: x.at[i].set(x[i - 1] + 1), x)

    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.T) @ v

    def branches(p: Any, x: Any) -> Any:
        return jax.lax.cond(p, lambda x: (x @ x.T) @ x, lambda x: x * 2, x)

    weights, batch = [ones((128, 128))] * 8, ones((512, 128))
    many = ones((16, 128, 128))
    return {
        "training": lambda: jax.jit(deep).lower(weights, batch).compile(),
        "training, donated": lambda: jax.jit(deep, donate_argnums=0).lower(weights, batch).compile(),
        "gradient of a scan": lambda: jax.jit(jax.grad(scanned)).lower(many, batch).compile(),
        "update in a loop": lambda: jax.jit(updated).lower(ones((1000, 100))).compile(),
        "attention": lambda: jax.jit(attention).lower(*[ones((512, 64))] * 3).compile(),
        "branches": lambda: jax.jit(branches).lower(True, ones((256, 256))).compile(),
        "sort": lambda: jax.jit(lambda x: jnp.sort(x, axis=0) + x).lower(ones((1000, 100))).compile(),
    }


def allocated(name: str) -> tuple[str, int]:
    """The text of a compiled program, and the bytes that XLA allocates for it."""
    compiled = programs()[name]()
    stats = compiled.memory_analysis()
    given = stats.argument_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes
    return compiled.as_text(), given + stats.temp_size_in_bytes
