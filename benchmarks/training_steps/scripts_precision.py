"""Scripts in narrow types: loss scaling, master weights, accumulated gradients, fp8 with amax histories."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks.training_steps.drawing import Draw, script
from benchmarks.training_steps.loops import fit


def _params(draw: Draw, *sizes: int) -> list[dict[str, Any]]:
    import jax.numpy as jnp

    return [{"w": draw.weights(n, m), "b": jnp.zeros(m)} for n, m in pairwise(sizes)]


def _apply(layers: Any, x: Any, activation: Any) -> Any:
    for number, p in enumerate(layers):
        x = x @ p["w"] + p["b"]
        x = activation(x) if number < len(layers) - 1 else x
    return x


@script("optax")
def fp16_loss_scaling(draw: Draw, steps: int) -> Any:
    """f16 with a dynamic loss scale: a step that overflows is left out, and the scale halved."""
    import jax
    import jax.numpy as jnp
    import optax

    width, activation, tx = (
        draw.choose(12, 16),
        draw.activation(),
        draw.optimizer("adam", "momentum", "adamw"),
    )
    params = _params(draw, 8, width, width, 3)
    state, scale, good = tx.init(params), jnp.float32(draw.choose(2.0**10, 2.0**15)), jnp.int32(0)

    @jax.jit
    def train_step(params: Any, state: Any, scale: Any, good: Any, x: Any, y: Any) -> Any:
        def loss_fn(params: Any) -> Any:
            half = jax.tree.map(lambda p: p.astype(jnp.float16), params)
            logits = _apply(half, x.astype(jnp.float16), activation).astype(jnp.float32)
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
            return loss * scale, loss

        grads, loss = jax.grad(loss_fn, has_aux=True)(params)
        grads = jax.tree.map(lambda g: g / scale, grads)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        updates, moved = tx.update(grads, state, params)
        new = optax.apply_updates(params, updates)

        def kept(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)

        good = jnp.where(finite, good + 1, 0)
        scale = jnp.where(finite, jnp.where(good % 2000 == 1999, scale * 2, scale), jnp.maximum(scale / 2, 1))
        return kept(new, params), kept(moved, state), scale, good, loss

    loss: Any = None
    for _ in range(steps):
        batch = draw.normal(8, 8), draw.integers(3, 8)
        params, state, scale, good, loss = train_step(params, state, scale, good, *batch)
    return loss


@script("optax")
def bf16_master_weights(draw: Draw, steps: int) -> Any:
    """Computed in bf16, LayerNorm in f32, master weights and moments in f32."""
    import jax
    import jax.numpy as jnp

    width, activation, eps = draw.choose(16, 24), draw.activation(), draw.choose(1e-5, 1e-6)
    params = {"layers": _params(draw, 10, width, width, 5), "scale": jnp.ones(10), "offset": jnp.zeros(10)}

    def loss_fn(p: Any, x: Any, y: Any) -> Any:
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        x = (x - mean) / jnp.sqrt(var + eps) * p["scale"] + p["offset"]
        narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), p["layers"])
        logits = _apply(narrow, x.astype(jnp.bfloat16), activation).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

    tx = draw.optimizer("adamw", "lion", "lamb")
    return fit(
        draw, steps, params, loss_fn, tx, lambda: (draw.normal(8, 10), draw.integers(5, 8)), donate=True
    )


@script("flax", "optax")
def bf16_linen_convolution(draw: Draw, steps: int) -> Any:
    """flax with `dtype=bfloat16` and parameters in f32; GroupNorm and an average over the picture."""
    import flax.linen as nn
    import jax.numpy as jnp

    width = draw.choose(8, 12)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.Conv(width, (3, 3), dtype=jnp.bfloat16)(x)
            x = nn.relu(nn.GroupNorm(4, dtype=jnp.bfloat16)(x))
            return nn.Dense(1)(x.mean((1, 2)).astype(jnp.float32))

    net = Net()

    def loss_fn(params: Any, x: Any, y: Any) -> Any:
        return ((net.apply(params, x)[:, 0] - y) ** 2).mean()

    params = net.init(draw.key(), draw.normal(1, 6, 6, 3))
    tx = draw.optimizer("adam", "momentum", "lars")
    return fit(draw, steps, params, loss_fn, tx, lambda: (draw.normal(4, 6, 6, 3), draw.normal(4)))


@script("optax")
def bf16_parameters(draw: Draw, steps: int) -> Any:
    """Everything in bf16, the moments too; the update in f32."""
    import jax
    import jax.numpy as jnp
    import optax

    width, activation = draw.choose(12, 16), draw.activation()
    params = jax.tree.map(lambda p: p.astype(jnp.bfloat16), _params(draw, 6, width, 1))
    tx = optax.adam(draw.rate(), mu_dtype=jnp.bfloat16)

    def loss_fn(p: Any, x: Any, y: Any) -> Any:
        return ((_apply(p, x, activation)[:, 0].astype(jnp.float32) - y) ** 2).mean()

    def batch() -> tuple[Any, Any]:
        return draw.normal(8, 6, dtype=jnp.bfloat16), draw.normal(8)

    return fit(draw, steps, params, loss_fn, tx, batch)


@script("optax")
def accumulated_gradients(draw: Draw, steps: int) -> Any:
    """Gradients of microbatches summed in a scan, clipped by their norm, averaged weights beside."""
    import jax
    import jax.numpy as jnp
    import optax

    width, parts, activation = draw.choose(10, 16), draw.choose(2, 4), draw.activation()
    params, clip, decay = _params(draw, 7, width, 3), draw.choose(0.1, 1.0), draw.choose(0.9, 0.999)
    tx = draw.optimizer("adamw", "momentum", "adam")
    state, average = tx.init(params), params

    @jax.jit
    def train_step(params: Any, state: Any, average: Any, x: Any, y: Any) -> Any:
        def loss_fn(params: Any, x: Any, y: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(_apply(params, x, activation), y).mean()

        def part(carry: Any, batch: Any) -> Any:
            loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
            return (carry[0] + loss, jax.tree.map(jnp.add, carry[1], grads)), None

        zeros = jax.tree.map(jnp.zeros_like, params)
        (loss, grads), _ = jax.lax.scan(part, (jnp.float32(0), zeros), (x, y))
        grads = jax.tree.map(lambda g: g / parts, grads)
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, clip / (norm + 1e-6)), grads)
        updates, moved = tx.update(grads, state, params)
        new = optax.apply_updates(params, updates)
        return (
            new,
            moved,
            jax.tree.map(lambda e, p: decay * e + (1 - decay) * p, average, new),
            loss / parts,
            norm,
        )

    loss: Any = None
    for _ in range(steps):
        batch = draw.normal(parts, 4, 7), draw.integers(3, parts, 4)
        params, state, average, loss, _ = train_step(params, state, average, *batch)
    return loss


@script("optax")
def fp8_amax_history(draw: Draw, steps: int) -> Any:
    """Products of f8 operands whose scales come from a history of maxima."""
    import jax
    import jax.numpy as jnp
    import optax

    width, length = draw.choose(8, 16), draw.choose(3, 4)
    kind = draw.choose(jnp.float8_e4m3fn, jnp.float8_e5m2)
    params, tx = {"w": draw.weights(8, width), "out": draw.weights(width, 1)}, draw.optimizer("adam", "adamw")
    state, history = tx.init(params), {"x": jnp.ones(length), "w": jnp.ones(length)}
    top = float(jnp.finfo(kind).max)

    @jax.custom_jvp
    def quantised(value: Any, scale: Any) -> Any:
        return jnp.clip(value / scale, -top, top).astype(kind).astype(jnp.float32) * scale

    @quantised.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return quantised(*primals), tangents[0]

    @jax.jit
    def train_step(params: Any, state: Any, history: Any, x: Any, y: Any) -> Any:
        scales = {name: jnp.maximum(past.max(), 1e-6) / top for name, past in history.items()}

        def loss_fn(p: Any) -> Any:
            h = quantised(x, scales["x"]) @ quantised(p["w"], scales["w"])
            return ((jax.nn.gelu(h) @ p["out"])[:, 0] - y).__pow__(2).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moved = tx.update(grads, state, params)
        seen = {"x": jnp.abs(x).max(), "w": jnp.abs(params["w"]).max()}
        history = {name: jnp.roll(past, 1).at[0].set(seen[name]) for name, past in history.items()}
        return optax.apply_updates(params, updates), moved, history, loss

    loss: Any = None
    for _ in range(steps):
        params, state, history, loss = train_step(params, state, history, draw.normal(8, 8), draw.normal(8))
    return loss


@script("optax")
def multi_steps_skipped_nonfinite(draw: Draw, steps: int) -> Any:
    """optax.MultiSteps around apply_if_finite: the update happens at every second step."""
    import optax

    width, activation = draw.choose(10, 14), draw.activation()
    inner = optax.apply_if_finite(draw.optimizer("adam", "momentum"), 5)
    tx = optax.MultiSteps(inner, 2)

    def loss_fn(p: Any, x: Any, y: Any) -> Any:
        return optax.log_cosh(_apply(p, x, activation)[:, 0], y).mean()

    params = _params(draw, 6, width, 1)
    return fit(draw, steps, params, loss_fn, tx, lambda: (draw.normal(8, 6), draw.normal(8)))
