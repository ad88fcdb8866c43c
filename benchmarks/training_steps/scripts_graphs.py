"""Scripts about graphs, tables and rankings: segment sums, softmax over segments, embedded categories."""

from __future__ import annotations

from typing import Any

from benchmarks.training_steps.drawing import Draw, script
from benchmarks.training_steps.loops import fit

_NODES, _EDGES = 9, 24


@script("optax")
def graph_convolution(draw: Draw, steps: int) -> Any:
    """Messages summed at their receivers and divided by the square roots of degrees."""
    import jax
    import jax.numpy as jnp
    import optax

    width, activation = draw.choose(6, 10), draw.activation()
    params = [{"w": draw.weights(n, m), "b": jnp.zeros(m)} for n, m in ((5, width), (width, 3))]

    def loss_fn(params: Any, x: Any, senders: Any, receivers: Any, y: Any) -> Any:
        degree = jax.ops.segment_sum(jnp.ones(_EDGES), receivers, _NODES)
        scale = jax.lax.rsqrt(jnp.maximum(degree, 1.0))
        for number, p in enumerate(params):
            sent = (x * scale[:, None])[senders]
            x = jax.ops.segment_sum(sent, receivers, _NODES) * scale[:, None] @ p["w"] + p["b"]
            x = activation(x) if number == 0 else x
        return optax.softmax_cross_entropy_with_integer_labels(x, y).mean()

    def batch() -> tuple[Any, ...]:
        edges = draw.integers(_NODES, _EDGES), draw.integers(_NODES, _EDGES)
        return draw.normal(_NODES, 5), *edges, draw.integers(3, _NODES)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "momentum", "adamw"), batch)


@script("optax")
def graph_attention(draw: Draw, steps: int) -> Any:
    """A softmax over the edges of each receiver, whose gate has a bias that it does not see."""
    import jax
    import jax.numpy as jnp

    width = draw.choose(6, 8)
    params = {
        "w": draw.weights(5, width), "a": draw.weights(2 * width, 1),
        "ab": jnp.zeros(1), "head": draw.weights(width, 1),
    }  # fmt: skip
    linear = draw.choose(True, False)

    def loss_fn(p: Any, x: Any, senders: Any, receivers: Any, y: Any) -> Any:
        h = x @ p["w"]
        score = (jnp.concatenate([h[senders], h[receivers]], -1) @ p["a"] + p["ab"])[:, 0]
        score = score if linear else jax.nn.leaky_relu(score, 0.2)
        score = jnp.exp(score - jax.ops.segment_max(score, receivers, _NODES)[receivers])
        weight = score / (jax.ops.segment_sum(score, receivers, _NODES)[receivers] + 1e-9)
        mixed = jax.ops.segment_sum(weight[:, None] * h[senders], receivers, _NODES)
        return ((jax.nn.elu(mixed) @ p["head"])[:, 0] - y).__pow__(2).mean()

    def batch() -> tuple[Any, ...]:
        edges = draw.integers(_NODES, _EDGES), draw.integers(_NODES, _EDGES)
        return draw.normal(_NODES, 5), *edges, draw.normal(_NODES)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "adamw", "rmsprop"), batch)


@script("optax")
def wide_and_deep(draw: Draw, steps: int) -> Any:
    """Tables of embeddings looked up and summed, crosses, a deep part; the gradient scatters."""
    import jax.numpy as jnp
    import optax

    width, activation = draw.choose(4, 8), draw.activation()
    params = {
        "tables": [draw.normal(n, width, scale=0.1) for n in (7, 11, 5)],
        "wide": jnp.zeros((7, 11)),
        "deep": {"w": draw.weights(3 * width + 4, 12), "b": jnp.zeros(12)},
        "head": draw.weights(12, 1),
    }

    def loss_fn(p: Any, ids: Any, x: Any, y: Any) -> Any:
        parts = [table[ids[:, n]] for n, table in enumerate(p["tables"])]
        h = activation(jnp.concatenate([*parts, jnp.log1p(jnp.abs(x))], -1) @ p["deep"]["w"] + p["deep"]["b"])
        logit = (h @ p["head"])[:, 0] + p["wide"][ids[:, 0], ids[:, 1]] + (parts[0] * parts[1]).sum(-1)
        return optax.sigmoid_binary_cross_entropy(logit, y).mean()

    def batch() -> tuple[Any, ...]:
        return draw.integers(5, 10, 3), draw.normal(10, 4), draw.integers(2, 10).astype(jnp.float32)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adagrad", "adam", "sgd"), batch)


@script("optax")
def matrix_factorisation(draw: Draw, steps: int) -> Any:
    """Ranking by pairs of two factors with biases; the bias of the user is seen by no difference."""
    import jax
    import jax.numpy as jnp

    width, decay = draw.choose(4, 6), draw.between(1e-4, 1e-2)
    params = {
        "user": draw.normal(8, width, scale=0.3), "item": draw.normal(12, width, scale=0.3),
        "user_bias": jnp.zeros(8), "item_bias": jnp.zeros(12),
    }  # fmt: skip

    def loss_fn(p: Any, users: Any, liked: Any, other: Any) -> Any:
        def score(items: Any) -> Any:
            both = (p["user"][users] * p["item"][items]).sum(-1)
            return both + p["user_bias"][users] + p["item_bias"][items]

        penalty = sum((leaf**2).sum() for leaf in (p["user"], p["item"]))
        return jax.nn.softplus(score(other) - score(liked)).mean() + decay * penalty

    def batch() -> tuple[Any, ...]:
        return draw.integers(8, 10), draw.integers(12, 10), draw.integers(12, 10)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "momentum", "adagrad"), batch)
