"""JAX programs that nothing is tuned on: what those of `programs` are compared with.

They were written, and measured, before anything was made faster for them; they stay as they are. Whoever
makes the numpy backend faster looks at `programs`, and at these only to see what came of it. Two of them were
looked at since, `interpolation` and `layer_norm_bf16`; `fresh` has others.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common.programs import Program, array


def untuned_programs() -> dict[str, Program]:
    """All programs by name."""
    return {**_layers(), **_training(), **_indexing(), **_numeric(), **_random()}


def _layers() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        causal = jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal, scores, -jnp.inf)), v)

    def conv_block(x: Any, w: Any, bias: Any) -> Any:
        y = jax.nn.silu(jax.lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=_IMAGES) + bias)
        return jax.lax.reduce_window(y, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4

    def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        normal = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return (normal * scale + bias).astype(x.dtype)

    def gru(x: Any, w: Any, u: Any, start: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            update, reset, new = jnp.split(row @ w, 3, axis=-1)
            old_update, old_reset, old_new = jnp.split(h @ u, 3, axis=-1)
            z, r = jax.nn.sigmoid(update + old_update), jax.nn.sigmoid(reset + old_reset)
            h = (1 - z) * jnp.tanh(new + r * old_new) + z * h
            return h, h

        return jax.lax.scan(step, start, x)[1]

    def routed_experts(x: Any, gate: Any, up: Any, down: Any) -> Any:
        weights, chosen = jax.lax.top_k(jax.nn.softmax(x @ gate), 2)
        spread = (jax.nn.one_hot(chosen, gate.shape[1]) * weights[..., None]).sum(1)
        return jnp.einsum("te,ted->td", spread, jax.nn.relu(jnp.einsum("td,edf->tef", x, up)) @ down)

    bf16 = "bfloat16"
    return {
        "attention_2x512x8x64": (attention, (array(2, 512, 8, 64),) * 3),
        "conv_block_16x64x64x32": (
            conv_block,
            (array(16, 64, 64, 32), array(5, 5, 32, 48), array(48)),
        ),
        "layer_norm_bf16_4096x768": (
            layer_norm,
            (array(4096, 768, dtype=bf16), array(768), array(768)),
        ),
        "gru_64x128x192": (
            gru,
            (array(64, 128, 96), array(96, 576), array(192, 576), array(128, 192)),
        ),
        "routed_experts_1024x128": (
            routed_experts,
            (array(1024, 128), array(128, 8), array(8, 128, 256), array(256, 128)),
        ),
    }


_IMAGES = ("NHWC", "HWIO", "NHWC")


def _training() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def mlp_step(p: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            hidden = x
            for w, b in p[:-1]:
                hidden = jax.nn.gelu(hidden @ w + b)
            return ((hidden @ p[-1][0] + p[-1][1] - y) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(p)
        return value, jax.tree.map(lambda a, g: a - 0.01 * g, p, gradient)

    def contrastive_gradient(images: Any, texts: Any, scale: Any) -> Any:
        def loss(images: Any, texts: Any) -> Any:
            a, b = (x / jnp.linalg.norm(x, axis=-1, keepdims=True) for x in (images, texts))
            logits, same = a @ b.T * jnp.exp(scale), jnp.arange(len(images))
            rows, columns = jax.nn.log_softmax(logits, 1), jax.nn.log_softmax(logits, 0)
            return -(rows[same, same] + columns[same, same]).mean() / 2

        return jax.value_and_grad(loss, argnums=(0, 1))(images, texts)

    def adam_bf16(p: Any, m: Any, v: Any, g: Any) -> Any:
        wide = g.astype(jnp.float32)
        m, v = 0.9 * m + 0.1 * wide, 0.95 * v + 0.05 * wide**2
        moved = p.astype(jnp.float32) * (1 - 1e-4) - 1e-3 * m / (jnp.sqrt(v) + 1e-8)
        return moved.astype(p.dtype), m, v

    layers = [(array(256, 1024), array(1024)), (array(1024, 1024), array(1024)), (array(1024, 64), array(64))]
    return {
        "gelu_mlp_step_512": (mlp_step, (layers, array(512, 256), array(512, 64))),
        "contrastive_gradient_1024x256": (
            contrastive_gradient,
            (array(1024, 256), array(1024, 256), array()),
        ),
        "adam_bf16_2M": (
            adam_bf16,
            (
                array(1 << 21, dtype="bfloat16"),
                array(1 << 21),
                array(1 << 21),
                array(1 << 21, dtype="bfloat16"),
            ),
        ),
    }


def _indexing() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def best_scores(x: Any) -> Any:
        values, places = jax.lax.top_k(x, 64)
        return jax.nn.softmax(values), places

    def one_hot_embedding(tokens: Any, table: Any) -> Any:
        return jax.nn.one_hot(tokens, len(table)) @ table

    def binned_means(x: Any, weights: Any) -> Any:
        bins = jnp.clip(((x + 4) * 32).astype(jnp.int32), 0, 255)
        sums = jnp.zeros(256).at[bins].add(weights)
        return sums / jnp.maximum(jnp.zeros(256).at[bins].add(1.0), 1)

    def discounted(x: Any) -> Any:
        return jnp.cumsum(x, 0) - jax.lax.cummax(x, 0)

    def graph_messages(nodes: Any, sources: Any, targets: Any, w: Any) -> Any:
        messages = jax.nn.relu(nodes[sources] @ w)
        return jax.ops.segment_sum(messages, targets, len(nodes)) + nodes

    def ranks(x: Any) -> Any:
        order = jnp.argsort(x, axis=-1)
        return jnp.take_along_axis(x, order, -1)[:, ::16], jnp.argsort(order, axis=-1)

    integers = {"dtype": "int32"}
    return {
        "best_scores_512x10000": (best_scores, (array(512, 10000),)),
        "one_hot_embedding_2048x4000": (one_hot_embedding, (array(2048, **integers), array(4000, 128))),
        "binned_means_1M": (binned_means, (array(1 << 20), array(1 << 20))),
        "discounted_4096x512": (discounted, (array(4096, 512),)),
        "graph_messages_100k": (
            graph_messages,
            (array(10000, 64), array(100000, **integers), array(100000, **integers), array(64, 64)),
        ),
        "ranks_128x8192": (ranks, (array(128, 8192),)),
    }


def _numeric() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def low_pass(signal: Any, cutoff: Any) -> Any:
        spectrum = jnp.fft.rfft(signal, axis=-1)
        gain = 1 / (1 + (jnp.arange(spectrum.shape[-1]) / cutoff) ** 4)
        return jnp.fft.irfft(spectrum * gain, axis=-1)

    def interpolation(x: Any, knots: Any, values: Any) -> Any:
        return jnp.interp(x, knots, values)

    def gaussian_process(points: Any, y: Any) -> Any:
        squares = ((points[:, None] - points[None]) ** 2).sum(-1)
        factor = jnp.linalg.cholesky(jnp.exp(-squares / 2) + 0.1 * jnp.eye(len(points)))
        return jax.scipy.linalg.cho_solve((factor, True), y)

    def resized(images: Any) -> Any:
        return jax.image.resize(images, (8, 192, 192, 3), "bilinear")

    def waves(now: Any, before: Any, speed: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            now, before = state
            around = sum(jnp.roll(now, shift, axis) for axis in (0, 1) for shift in (1, -1)) - 4 * now
            return 2 * now - before + speed * around, now

        return jax.lax.fori_loop(0, 10, step, (now, before))[0]

    return {
        "low_pass_128x16384": (low_pass, (array(128, 16384), array())),
        "interpolation_500k": (interpolation, (array(500000), array(1024), array(1024))),
        "gaussian_process_512": (gaussian_process, (array(512, 8), array(512, 4))),
        "resized_8x96x96x3": (resized, (array(8, 96, 96, 3),)),
        "waves_1024x1024": (waves, (array(1024, 1024),) * 2 + (array(1024, 1024),)),
    }


def _random() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def dropout(key: Any, x: Any) -> Any:
        kept = jax.random.bernoulli(jax.random.wrap_key_data(key, impl="threefry2x32"), 0.9, x.shape)
        return jnp.where(kept, x / jnp.asarray(0.9, x.dtype), 0)

    return {"dropout_1024x1024": (dropout, (array(2, dtype="uint32"), array(1024, 1024)))}
