"""JAX programs written after the numpy backend was tuned on `programs` and mended for those of `untuned`.

What they measure is what somebody else's program may expect. They stay as they are.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common.programs import Program, array


def fresh_programs() -> dict[str, Program]:
    """All programs by name."""
    return {**_layers(), **_losses(), **_data(), **_numeric()}


def _layers() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def gated_mlp(x: Any, scale: Any, gate: Any, up: Any, down: Any) -> Any:
        wide = x.astype(jnp.float32)
        normal = wide * jax.lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * scale
        hidden = normal.astype(x.dtype)
        return x + (jax.nn.silu(hidden @ gate) * (hidden @ up)) @ down

    def rotary_attention(q: Any, k: Any, v: Any) -> Any:
        def turned(x: Any) -> Any:
            half = x.shape[-1] // 2
            angles = jnp.arange(x.shape[1])[:, None] * 1e4 ** (-jnp.arange(half) / half)
            sine, cosine = jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]
            a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
            return jnp.concatenate([a * cosine - b * sine, b * cosine + a * sine], -1).astype(x.dtype)

        scores = jnp.einsum("bqhd,bkhd->bhqk", turned(q), turned(k)) / q.shape[-1] ** 0.5
        weights = jax.nn.softmax(scores.astype(jnp.float32)).astype(v.dtype)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v)

    def batch_norm(x: Any, scale: Any, bias: Any) -> Any:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return jax.nn.relu((x - mean) / jnp.sqrt(variance + 1e-5) * scale + bias), mean, variance

    bf16 = "bfloat16"
    return {
        "gated_mlp_bf16_1024x512": (
            gated_mlp,
            (
                array(1024, 512, dtype=bf16),
                array(512),
                array(512, 1408, dtype=bf16),
                array(512, 1408, dtype=bf16),
                array(1408, 512, dtype=bf16),
            ),
        ),
        "rotary_attention_bf16_4x256x8x64": (rotary_attention, (array(4, 256, 8, 64, dtype=bf16),) * 3),
        "batch_norm_32x56x56x64": (batch_norm, (array(32, 56, 56, 64), array(64), array(64))),
    }


def _losses() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def cross_entropy_gradient(logits: Any, labels: Any) -> Any:
        def loss(logits: Any) -> Any:
            chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)
            return -chosen.mean()

        return jax.value_and_grad(loss)(logits)

    def binary_loss_gradient(logits: Any, targets: Any) -> Any:
        def loss(logits: Any) -> Any:
            return (jnp.maximum(logits, 0) - logits * targets + jnp.log1p(jnp.exp(-jnp.abs(logits)))).mean()

        return jax.value_and_grad(loss)(logits)

    def clipped_momentum(params: Any, velocities: Any, gradients: Any) -> Any:
        norm = jnp.sqrt(sum((g**2).sum() for g in gradients))
        factor = jnp.minimum(1, 1 / (norm + 1e-6))
        velocities = [0.9 * v + factor * g for v, g in zip(velocities, gradients)]
        return [p - 0.01 * (v + 1e-4 * p) for p, v in zip(params, velocities)], velocities

    leaves = [array(1024, 1024), array(1024), array(1024, 2048), array(512, 512)]
    return {
        "cross_entropy_gradient_1024x4096": (
            cross_entropy_gradient,
            (array(1024, 4096), array(1024, dtype="int32")),
        ),
        "binary_loss_gradient_4096x512": (binary_loss_gradient, (array(4096, 512), array(4096, 512))),
        "clipped_momentum_3M": (clipped_momentum, (leaves, leaves, leaves)),
    }


def _data() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def augmented(images: Any, flips: Any, gains: Any) -> Any:
        x = images.astype(jnp.float32) / 255
        x = jnp.where(flips[:, None, None, None] > 0, x[:, :, ::-1], x)[:, 16:-16, 16:-16]
        grey = x @ jnp.array([0.299, 0.587, 0.114])
        x = grey[..., None] + (1 + gains[:, None, None, None]) * (x - grey[..., None])
        return jnp.clip(jnp.round(x * 255), 0, 255).astype(jnp.uint8)

    def rows_to_int8(x: Any) -> Any:
        scale = jnp.abs(x).max(-1, keepdims=True) / 127
        return jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale

    def cluster_step(points: Any, centres: Any) -> Any:
        squares = (points**2).sum(-1)[:, None] - 2 * points @ centres.T + (centres**2).sum(-1)
        nearest = jnp.argmin(squares, axis=-1)
        sums = jax.ops.segment_sum(points, nearest, len(centres))
        counts = jax.ops.segment_sum(jnp.ones(len(points)), nearest, len(centres))
        return sums / jnp.maximum(counts, 1)[:, None], nearest

    return {
        "augmented_16x256x256x3": (
            augmented,
            (array(16, 256, 256, 3, dtype="uint8"), array(16), array(16)),
        ),
        "rows_to_int8_4096x1024": (rows_to_int8, (array(4096, 1024),)),
        "cluster_step_50000x16": (cluster_step, (array(50000, 16), array(64, 16))),
    }


def _numeric() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def reaction(u: Any, v: Any) -> Any:
        def around(x: Any) -> Any:
            return sum(jnp.roll(x, shift, axis) for axis in (0, 1) for shift in (1, -1)) - 4 * x

        def step(_: Any, state: Any) -> Any:
            u, v = state
            made = u * v * v
            return u + 0.16 * around(u) - made + 0.035 * (1 - u), v + 0.08 * around(v) + made - 0.1 * v

        return jax.lax.fori_loop(0, 20, step, (u, v))

    def random_walks(key: Any) -> Any:
        steps = jax.random.normal(jax.random.wrap_key_data(key, impl="threefry2x32"), (2048, 512))
        paths = jnp.cumsum(steps, axis=1)
        return jnp.maximum(paths.max(1) - 10, 0).mean(), paths[:, -1].std()

    def ridge(x: Any, y: Any) -> Any:
        return jnp.linalg.solve(x.T @ x + 0.1 * jnp.eye(x.shape[1]), x.T @ y)

    return {
        "reaction_512x512": (reaction, (array(512, 512), array(512, 512))),
        "random_walks_2048x512": (random_walks, (array(2, dtype="uint32"),)),
        "ridge_20000x256": (ridge, (array(20000, 256), array(20000, 8))),
    }
