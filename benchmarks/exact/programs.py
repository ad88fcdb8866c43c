"""Programs that nobody tuned the exact arbiter on: JAX functions whose numbers are drawn from a seed.

Learning rates, epsilons, decays, widths and choices of activation, loss, optimiser and normalisation differ
from seed to seed, so that every seed is a set of programs with constants that were not seen before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np

#: A function and the shapes of its arguments.
Program = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Draw:
    """Choices of one program."""

    rng: np.random.Generator

    def one(self, *options: Any) -> Any:
        """One of several."""
        return options[int(self.rng.integers(len(options)))]

    def size(self, low: int, high: int) -> int:
        """A number of elements."""
        return int(self.rng.integers(low, high + 1))

    def decimal(self, low: float, high: float) -> float:
        """A number of one to four digits, as people write them; all magnitudes are equally likely."""
        value = float(np.exp(self.rng.uniform(np.log(low), np.log(high))))
        return float(f"{value:.{self.size(0, 3)}e}")


def array(*dims: int, dtype: str = "float32") -> Any:
    import jax

    return jax.ShapeDtypeStruct(dims, dtype)


def program_names(seed: int) -> list[str]:
    """The programs of a seed."""
    return [f"{name}#{seed}" for name in _families()]


def program_text(name: str) -> str:
    """HLO before optimisation of a program of `program_names`.

    Raises:
        ImportError: JAX is not installed.
    """
    import jax

    jax.config.update("jax_platforms", "cpu")
    family, _, seed = name.partition("#")
    function, arguments = _families()[family](
        Draw(np.random.default_rng([int(seed), crc32(family.encode())]))
    )
    lowered = jax.jit(function).lower(*arguments)
    text: str = lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)
    return text


def _families() -> dict[str, Callable[[Draw], Program]]:
    from benchmarks.exact.programs_numeric import NUMERIC

    return {**TRAINING, **NUMERIC}


# -- layers


def activation(draw: Draw) -> Callable[[Any], Any]:
    """An elementwise function."""
    import jax
    import jax.numpy as jnp

    alpha, slope, beta = draw.decimal(0.1, 2), draw.decimal(1e-3, 0.5), draw.decimal(0.3, 3)
    return draw.one(
        jax.nn.relu,
        jax.nn.silu,
        jax.nn.softplus,
        jax.nn.mish,
        jax.nn.selu,
        jax.nn.hard_swish,
        jax.nn.soft_sign,
        jnp.tanh,
        lambda x: jax.nn.gelu(x, approximate=True),
        lambda x: jax.nn.gelu(x, approximate=False),
        lambda x: jax.nn.elu(x, alpha),
        lambda x: jax.nn.leaky_relu(x, slope),
        lambda x: x * jax.nn.sigmoid(beta * x),
        lambda x: jax.nn.celu(x, alpha),
        lambda x: jnp.log1p(jnp.exp(-jnp.abs(x))) + jnp.maximum(x, 0),
    )


def normalisation(draw: Draw) -> Callable[[Any], Any]:
    """A normalisation over the last dimension, or over groups of it."""
    import jax
    import jax.numpy as jnp

    epsilon = draw.decimal(1e-8, 1e-2)

    def layer(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + epsilon)

    def root_mean_square(x: Any) -> Any:
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon)

    def raw_moments(x: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt((x * x).mean(-1, keepdims=True) - mean * mean + epsilon)

    def group(x: Any) -> Any:
        parts = x.reshape(*x.shape[:-1], 2, -1)
        return layer(parts).reshape(x.shape)

    def unit_length(x: Any) -> Any:
        return x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), epsilon)

    def batch(x: Any) -> Any:
        axes = tuple(range(x.ndim - 1))
        return (x - x.mean(axes)) / jnp.sqrt(x.var(axes) + epsilon)

    return draw.one(layer, root_mean_square, raw_moments, group, unit_length, batch)


def loss_of(draw: Draw) -> Callable[[Any, Any], Any]:
    """A loss of logits [N, K] and labels [N]."""
    import jax
    import jax.numpy as jnp

    smoothing, delta, gamma = draw.decimal(0.01, 0.3), draw.decimal(0.1, 3), draw.decimal(0.5, 4)

    def cross_entropy(z: Any, y: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1).mean()

    def smoothed(z: Any, y: Any) -> Any:
        targets = jax.nn.one_hot(y, z.shape[1]) * (1 - smoothing) + smoothing / z.shape[1]
        return -(targets * jax.nn.log_softmax(z)).sum(-1).mean()

    def huber(z: Any, y: Any) -> Any:
        d = jnp.abs(z - jax.nn.one_hot(y, z.shape[1]))
        return jnp.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta)).mean()

    def focal(z: Any, y: Any) -> Any:
        p = jnp.take_along_axis(jax.nn.softmax(z), y[:, None], 1)
        return -((1 - p) ** gamma * jnp.log(p + 1e-7)).mean()

    def squared(z: Any, y: Any) -> Any:
        return ((z - y[:, None]) ** 2).mean()

    def logistic(z: Any, y: Any) -> Any:
        t = jax.nn.one_hot(y, z.shape[1])
        return (jnp.maximum(z, 0) - z * t + jnp.log1p(jnp.exp(-jnp.abs(z)))).mean()

    return draw.one(cross_entropy, smoothed, huber, focal, squared, logistic)


def update_rule(draw: Draw) -> tuple[int, Callable[..., tuple[Any, ...]]]:
    """An optimiser: how many moments it keeps, and (parameter, gradient, step, moments) → new ones."""
    import jax.numpy as jnp

    rate, decay = draw.decimal(1e-5, 1e-1), draw.decimal(1e-5, 1e-1)
    b1, b2 = 1 - draw.decimal(1e-2, 0.3), 1 - draw.decimal(1e-4, 3e-2)
    epsilon = draw.decimal(1e-10, 1e-5)

    def sgd(p: Any, g: Any, t: Any) -> tuple[Any, ...]:
        return (p - rate * (g + decay * p),)

    def momentum(p: Any, g: Any, t: Any, m: Any) -> tuple[Any, ...]:
        m = b1 * m + g
        return p - rate * (g + b1 * m), m

    def adam(p: Any, g: Any, t: Any, m: Any, v: Any) -> tuple[Any, ...]:
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        step = (m / (1 - b1**t)) / (jnp.sqrt(jnp.abs(v) / (1 - b2**t)) + epsilon)
        return p - rate * (step + decay * p), m, v

    def rmsprop(p: Any, g: Any, t: Any, v: Any) -> tuple[Any, ...]:
        v = b2 * v + (1 - b2) * g * g
        return p - rate * g / jnp.sqrt(v + epsilon), v

    def adagrad(p: Any, g: Any, t: Any, v: Any) -> tuple[Any, ...]:
        v = v + g * g
        return p - rate * g / (jnp.sqrt(v) + epsilon), v

    def lion(p: Any, g: Any, t: Any, m: Any) -> tuple[Any, ...]:
        return p - rate * (jnp.sign(b1 * m + (1 - b1) * g) + decay * p), b2 * m + (1 - b2) * g

    return draw.one((0, sgd), (1, momentum), (2, adam), (1, rmsprop), (1, adagrad), (1, lion))


def step_of(draw: Draw, loss: Callable[..., Any], parameters: Any, *batch: Any) -> Program:
    """A training step: new parameters and moments, and the loss; gradients may be clipped by their norm."""
    import jax
    import jax.numpy as jnp

    count, rule = update_rule(draw)
    clip = draw.one(None, draw.decimal(0.1, 10))

    def step(p: Any, moments: Any, t: Any, *batch: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, *batch)
        if clip is not None:
            norm = jnp.sqrt(sum(jnp.sum(g.astype(jnp.float32) ** 2) for g in jax.tree.leaves(gradient)))
            gradient = jax.tree.map(lambda g: g * jnp.minimum(1, clip / (norm + 1e-6)), gradient)
        new = jax.tree.map(lambda p, g, *m: rule(p, g, t, *m), p, gradient, *moments)
        return new, value

    return step, (parameters, (parameters,) * count, array(), *batch)


# -- programs


def _mlp(draw: Draw) -> Program:
    act, norm, loss = activation(draw), normalisation(draw), loss_of(draw)
    sizes = [draw.size(4, 9), 2 * draw.size(3, 7), 2 * draw.size(3, 7), draw.size(3, 6)]
    dtype = draw.one("float32", "float32", "bfloat16")

    def objective(p: Any, x: Any, y: Any) -> Any:
        for number, (w, b) in enumerate(p):
            x = x @ w + b
            x = x if number == len(p) - 1 else act(norm(x))
        return loss(x.astype("float32"), y)

    layers = [(array(a, b, dtype=dtype), array(b, dtype=dtype)) for a, b in pairwise(sizes)]
    batch = draw.size(3, 8)
    return step_of(draw, objective, layers, array(batch, sizes[0], dtype=dtype), array(batch, dtype="int32"))


def _cnn(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    act, norm, loss = activation(draw), normalisation(draw), loss_of(draw)
    channels, side = 2 * draw.size(2, 4), 4 * draw.size(1, 2)
    pool = draw.one("max", "average")
    stride, groups = draw.one(1, 2), draw.one(1, 2)

    def objective(p: Any, x: Any, y: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, p["a"], (1, 1), "SAME", dimension_numbers=numbers)
        x = act(norm(x))
        x = jax.lax.conv_general_dilated(
            x, p["b"], (stride,) * 2, "SAME", dimension_numbers=numbers, feature_group_count=groups
        )
        window = (1, 2, 2, 1)
        if pool == "max":
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
        else:
            x = jax.lax.reduce_window(x, 0.0, jax.lax.add, window, window, "VALID") / 4
        return loss(x.mean((1, 2)) @ p["c"], y)

    parameters = {
        "a": array(3, 3, 2, channels),
        "b": array(3, 3, channels // groups, channels),
        "c": array(channels, 5),
    }
    return step_of(draw, objective, parameters, array(2, side, side, 2), array(2, dtype="int32"))


def _rotated(x: Any, base: float) -> Any:
    """Positions turned into x [..., T, D], as in RoPE."""
    import jax.numpy as jnp

    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[-2])[:, None] * base ** (-jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    cosine, sine = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    return jnp.concatenate([a * cosine - b * sine, a * sine + b * cosine], -1)


def attention(draw: Draw, heads: int, width: int) -> Callable[..., Any]:
    """(x, q, k, v) → what the heads give, side by side."""
    import jax
    import jax.numpy as jnp

    mask, bias = draw.one("causal", "window", "none"), draw.one("none", "alibi", "rope", "cap")
    base, cap, masked = draw.decimal(100, 1e5), draw.decimal(5, 60), draw.one(-1e9, -1e30, float("-inf"))
    scale = draw.one((width // heads) ** -0.5, draw.decimal(0.05, 0.5))

    def apply(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
        length = x.shape[-2]
        q, k, v = ((x @ w).reshape(*x.shape[:-1], heads, -1).swapaxes(-2, -3) for w in (wq, wk, wv))
        if bias == "rope":
            q, k = _rotated(q, base), _rotated(k, base)
        scores = jnp.einsum("...qd,...kd->...qk", q, k) * scale
        i, j = jnp.arange(length)[:, None], jnp.arange(length)
        if bias == "alibi":
            slopes = 2.0 ** -(8 * (1 + jnp.arange(heads)) / heads)
            scores = scores - slopes[:, None, None] * jnp.abs(i - j)
        if bias == "cap":
            scores = cap * jnp.tanh(scores / cap)
        if mask != "none":
            seen = (j <= i) if mask == "causal" else (j <= i) & (i - j < 3)
            scores = jnp.where(seen, scores, masked)
        weights = jax.nn.softmax(scores.astype("float32"), -1).astype(x.dtype)
        return (weights @ v).swapaxes(-2, -3).reshape(*x.shape[:-1], -1)

    return apply


def _transformer(draw: Draw, backward: bool = True) -> Program:
    heads = draw.one(2, 4)
    width, length = heads * draw.one(2, 4), draw.size(4, 7)
    act, norm, attend = activation(draw), normalisation(draw), attention(draw, heads, width)
    dtype, gated = draw.one("float32", "bfloat16"), draw.one(True, False)
    keep = draw.decimal(0.1, 1.0)

    def forward(p: Any, x: Any) -> Any:
        x = x + keep * attend(norm(x), p["q"], p["k"], p["v"]) @ p["o"]
        hidden = act(norm(x) @ p["up"])
        return x + (hidden * (x @ p["gate"]) if gated else hidden) @ p["down"]

    def objective(p: Any, x: Any, y: Any) -> Any:
        return ((forward(p, x) - y).astype("float32") ** 2).mean()

    parameters = {n: array(width, width, dtype=dtype) for n in "qkvo"}
    parameters |= {n: array(width, 2 * width, dtype=dtype) for n in ("up", "gate")}
    parameters["down"] = array(2 * width, width, dtype=dtype)
    x = array(2, length, width, dtype=dtype)
    return step_of(draw, objective, parameters, x, x) if backward else (forward, (parameters, x))


def _recurrent(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    width, kind, act = 2 * draw.size(2, 4), draw.one("lstm", "gru", "plain", "leaky"), activation(draw)
    leak, loss = draw.decimal(0.01, 0.9), loss_of(draw)

    def cell(p: Any, state: Any, x: Any) -> Any:
        h, c = state
        z = x @ p["w"] + h @ p["u"] + p["b"]
        if kind == "lstm":
            i, f, o, g = jnp.split(z, 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c)
        r, u, n, _ = jnp.split(z, 4, -1)
        if kind == "gru":
            u = jax.nn.sigmoid(u)
            return ((1 - u) * jnp.tanh(n + jax.nn.sigmoid(r) * h) + u * h, c)
        return (act(n) if kind == "plain" else (1 - leak) * h + leak * act(n), c)

    def objective(p: Any, x: Any, y: Any) -> Any:
        start = jnp.zeros((x.shape[1], width))
        (h, _), states = jax.lax.scan(lambda s, r: (cell(p, s, r), s[0]), (start, start), x)
        return loss(h @ p["v"], y) + 1e-3 * (states**2).mean()

    parameters = {
        "w": array(3, 4 * width),
        "u": array(width, 4 * width),
        "b": array(4 * width),
        "v": array(width, 4),
    }
    return step_of(draw, objective, parameters, array(draw.size(3, 6), 2, 3), array(2, dtype="int32"))


def _mixture_of_experts(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    experts, width, act = draw.size(3, 4), 2 * draw.size(2, 3), activation(draw)
    weight, jitter = draw.decimal(1e-3, 0.1), draw.decimal(1e-3, 0.1)

    def objective(p: Any, x: Any, y: Any) -> Any:
        gates = jax.nn.softmax((x @ p["route"]) * (1 + jitter))
        top, chosen = jax.lax.top_k(gates, 2)
        picked = jax.nn.one_hot(chosen, experts) * (top / top.sum(-1, keepdims=True))[..., None]
        hidden = act(jnp.einsum("td,edh->teh", x, p["up"]))
        out = jnp.einsum("teh,ehd,tke->td", hidden, p["down"], picked)
        balance = (gates.mean(0) * picked.sum(1).mean(0)).sum() * experts
        return ((out - y) ** 2).mean() + weight * balance

    parameters = {
        "route": array(width, experts),
        "up": array(experts, width, 6),
        "down": array(experts, 6, width),
    }
    return step_of(draw, objective, parameters, array(5, width), array(5, width))


def _variational(draw: Draw) -> Program:
    import jax
    import jax.numpy as jnp

    act, beta, width = activation(draw), draw.decimal(0.1, 4), draw.size(3, 5)

    def objective(p: Any, x: Any, key: Any) -> Any:
        z = act(x @ p["a"])
        mean, log_variance = z @ p["m"], z @ p["s"]
        noise = jax.random.normal(jax.random.wrap_key_data(key, impl="threefry2x32"), mean.shape)
        out = act((mean + jnp.exp(0.5 * log_variance) * noise) @ p["b"]) @ p["c"]
        divergence = -0.5 * (1 + log_variance - mean**2 - jnp.exp(log_variance)).sum(-1)
        return (((out - x) ** 2).sum(-1) + beta * divergence).mean()

    parameters = {
        "a": array(6, 8), "m": array(8, width), "s": array(8, width), "b": array(width, 8), "c": array(8, 6)
    }  # fmt: skip
    return step_of(draw, objective, parameters, array(4, 6), array(2, dtype="uint32"))


TRAINING: dict[str, Callable[[Draw], Program]] = {
    "mlp_step": _mlp,
    "mlp_step_2": _mlp,
    "cnn_step": _cnn,
    "transformer_step": _transformer,
    "transformer_step_2": _transformer,
    "transformer": lambda draw: _transformer(draw, backward=False),
    "recurrent_step": _recurrent,
    "experts_step": _mixture_of_experts,
    "variational_step": _variational,
}
