"""JAX programs on arrays of realistic size, lowered to HLO text: what the corpus is too small for.

Each function of `PROGRAMS` is lowered without being run; it takes no time to speak of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

#: Program name → (function, shapes and dtypes of its arguments).
Program: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


def program_texts(
    only: str = "", programs: Callable[[], dict[str, Program]] | None = None
) -> Iterator[tuple[str, str]]:
    """Name and HLO text (before optimisation) of every program whose name matches `only`.

    Yields nothing where JAX is not installed.

    Args:
        only: regular expression.
        programs: makes the programs; without it, those of this file.
    """
    try:
        import jax
    except ImportError:
        return
    jax.config.update("jax_platforms", "cpu")
    for name, (function, arguments) in (programs or _programs)().items():
        if re.search(only, name):
            lowered = jax.jit(function).lower(*arguments)
            yield name, lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)


def _programs() -> dict[str, Program]:
    """All programs by name."""
    return {**_elementwise(), **_networks(), **_training(), **_indexing(), **_loops()}


def array(*dims: int, dtype: str = "float32") -> Any:
    import jax

    return jax.ShapeDtypeStruct(dims, dtype)


def _elementwise() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def black_scholes(price: Any, strike: Any, years: Any, rate: Any, volatility: Any) -> Any:
        deviation = volatility * jnp.sqrt(years)
        d1 = (jnp.log(price / strike) + (rate + volatility**2 / 2) * years) / deviation
        below = [(1 + jax.lax.erf(d / 2**0.5)) / 2 for d in (d1, d1 - deviation)]
        return price * below[0] - strike * jnp.exp(-rate * years) * below[1]

    def gelu(x: Any, bias: Any) -> Any:
        return jax.nn.gelu(x + bias)

    def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias

    def threefry_normal(key: Any) -> Any:
        return jax.random.normal(jax.random.wrap_key_data(key, impl="threefry2x32"), (1 << 20,), "float32")

    return {
        "black_scholes_1M": (black_scholes, (array(1000000),) * 3 + (array(),) * 2),
        "gelu_f32_2048x2048": (gelu, (array(2048, 2048), array(2048))),
        "gelu_bf16_2048x2048": (gelu, (array(2048, 2048, dtype="bfloat16"), array(2048, dtype="bfloat16"))),
        "layer_norm_4096x1024": (layer_norm, (array(4096, 1024), array(1024), array(1024))),
        "softmax_4096x1024": (jax.nn.softmax, (array(4096, 1024),)),
        "softmax_bf16_4096x1024": (jax.nn.softmax, (array(4096, 1024, dtype="bfloat16"),)),
        "threefry_normal_1M": (threefry_normal, (array(2, dtype="uint32"),)),
    }


def _attention(x: Any, p: Any, heads: int) -> Any:
    import jax
    import jax.numpy as jnp

    batch, length, width = x.shape
    q, k, v = (
        (x @ p[n]).reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)
        for n in ("q", "k", "v")
    )
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / (width // heads) ** 0.5
    mask = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    merged = jnp.einsum("bhqk,bhkd->bhqd", weights, v).transpose(0, 2, 1, 3).reshape(x.shape)
    return merged @ p["o"]


def transformer_layer(x: Any, p: Any, heads: int) -> Any:
    import jax

    def norm(y: Any, scale: Any) -> Any:
        return y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6) * scale

    x = x + _attention(norm(x, p["n1"]), p, heads)
    return x + jax.nn.gelu(norm(x, p["n2"]) @ p["up"]) @ p["down"]


def layer_parameters(width: int, dtype: str) -> dict[str, Any]:
    square = {name: array(width, width, dtype=dtype) for name in ("q", "k", "v", "o")}
    norms = {name: array(width, dtype=dtype) for name in ("n1", "n2")}
    wide = {"up": array(width, 4 * width, dtype=dtype), "down": array(4 * width, width, dtype=dtype)}
    return {**square, **norms, **wide}


def _conv(x: Any, w: Any, stride: int = 1) -> Any:
    import jax

    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)


def _networks() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def transformer(x: Any, p: Any) -> Any:
        return transformer_layer(x, p, 8)

    def resnet_block(x: Any, p: Any) -> Any:
        def norm(y: Any, n: str) -> Any:
            mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
            return (y - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale" + n] + p["bias" + n]

        y = jax.nn.relu(norm(_conv(x, p["w1"]), "1"))
        return jax.nn.relu(x + norm(_conv(y, p["w2"]), "2"))

    def int8_mlp(x: Any, w1: Any, w2: Any) -> Any:
        def dot(a: Any, b: Any) -> Any:
            return jax.lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)

        hidden = jnp.clip(dot(x, w1) >> 7, 0, 127).astype(jnp.int8)
        return dot(hidden, w2)

    norms = {f"{kind}{n}": array(64) for kind in ("scale", "bias") for n in "12"}
    weights = {f"w{n}": array(3, 3, 64, 64) for n in "12"}

    def depthwise(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=96
        )

    int8 = {n: array(*d, dtype="int8") for n, d in (("x", (512, 1024)), ("a", (1024, 1024)))}
    return {
        "transformer_f32_4x256x512": (transformer, (array(4, 256, 512), layer_parameters(512, "float32"))),
        "transformer_bf16_4x256x512": (
            transformer,
            (array(4, 256, 512, dtype="bfloat16"), layer_parameters(512, "bfloat16")),
        ),
        "resnet_block_8x56x56x64": (resnet_block, (array(8, 56, 56, 64), {**norms, **weights})),
        "depthwise_8x56x56x96": (depthwise, (array(8, 56, 56, 96), array(3, 3, 1, 96))),
        "int8_mlp_512x1024": (int8_mlp, (int8["x"], int8["a"], int8["a"])),
    }


def _training() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def adam(p: Any, m: Any, v: Any, g: Any, step: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        update = (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)
        return p - 1e-3 * update, m, v

    def cross_entropy(logits: Any, labels: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    def mlp_step(p: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            hidden = jax.nn.relu(x @ p["w1"] + p["b1"])
            return cross_entropy(jax.nn.relu(hidden @ p["w2"] + p["b2"]) @ p["w3"], y)

        return jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p))

    def cnn_step(p: Any, x: Any, y: Any) -> Any:
        def pool(a: Any) -> Any:
            return jax.lax.reduce_window(a, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

        def loss(p: Any) -> Any:
            a = pool(jax.nn.relu(_conv(x, p["w1"])))
            a = pool(jax.nn.relu(_conv(a, p["w2"])))
            return cross_entropy(a.reshape(len(x), -1) @ p["w3"], y)

        return jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p))

    def transformer_step(p: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            return (transformer_layer(x, p, 8) ** 2).mean()

        return jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p))

    big = array(2048, 2048)
    labels = array(256, dtype="int32")
    mlp = {"w1": array(784, 1024), "b1": array(1024), "w2": array(1024, 1024), "b2": array(1024)}
    cnn = {"w1": array(3, 3, 1, 32), "w2": array(3, 3, 32, 64), "w3": array(7 * 7 * 64, 10)}
    return {
        "adam_4M": (adam, (big, big, big, big, array(dtype="int32"))),
        "mlp_step_256": (mlp_step, ({**mlp, "w3": array(1024, 10)}, array(256, 784), labels)),
        "cnn_step_64": (cnn_step, (cnn, array(64, 28, 28, 1), array(64, dtype="int32"))),
        "transformer_step_f32": (
            transformer_step,
            (layer_parameters(256, "float32"), array(4, 128, 256)),
        ),
        "transformer_step_bf16": (
            transformer_step,
            (layer_parameters(256, "bfloat16"), array(4, 128, 256, dtype="bfloat16")),
        ),
    }


def _indexing() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def embedding(table: Any, tokens: Any) -> Any:
        return table[tokens]

    def embedding_gradient(table: Any, tokens: Any, gradient: Any) -> Any:
        return table.at[tokens].add(gradient)

    def histogram(values: Any) -> Any:
        return jnp.zeros(1024, jnp.int32).at[values].add(1)

    def sort_pairs(keys: Any, values: Any) -> Any:
        return jax.lax.sort((keys, values), dimension=1, num_keys=1)

    def top_k(x: Any) -> Any:
        return jax.lax.top_k(x, 16)

    def cumulative(x: Any) -> Any:
        return jnp.cumsum(x, axis=1)

    table, tokens = array(32000, 256), array(8, 512, dtype="int32")
    return {
        "embedding_4096x256": (embedding, (table, tokens)),
        "embedding_gradient_4096x256": (embedding_gradient, (table, tokens, array(8, 512, 256))),
        "histogram_1M": (histogram, (array(1000000, dtype="int32"),)),
        "sort_pairs_256x4096": (sort_pairs, (array(256, 4096), array(256, 4096, dtype="int32"))),
        "top_k_256x8192": (top_k, (array(256, 8192),)),
        "cumsum_512x4096": (cumulative, (array(512, 4096),)),
    }


def _loops() -> dict[str, Program]:
    import jax
    import jax.numpy as jnp

    def recurrent(x: Any, w: Any, u: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            h = jnp.tanh(row @ w + h @ u)
            return h, h

        return jax.lax.scan(step, jnp.zeros((x.shape[1], w.shape[1])), x)

    def stencil(grid: Any) -> Any:
        def step(_: Any, g: Any) -> Any:
            p = jnp.pad(g, 1)
            return (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) * 0.25

        return jax.lax.fori_loop(0, 20, step, grid)

    def mandelbrot(real: Any, imaginary: Any) -> Any:
        c = real[None, :] + 1j * imaginary[:, None]

        def step(_: Any, state: Any) -> Any:
            z, count = state
            z = jnp.where(jnp.abs(z) < 2, z * z + c, z)
            return z, count + (jnp.abs(z) < 2)

        return jax.lax.fori_loop(0, 20, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]

    def n_body(position: Any, mass: Any) -> Any:
        offset = position[None] - position[:, None]
        distance = (offset**2).sum(-1) + 1e-3
        return (offset * (mass / distance**1.5)[..., None]).sum(1)

    return {
        "recurrent_128x64x256": (recurrent, (array(128, 64, 256), array(256, 256), array(256, 256))),
        "stencil_1024x1024": (stencil, (array(1024, 1024),)),
        "mandelbrot_512x512": (mandelbrot, (array(512), array(512))),
        "n_body_1024": (n_body, (array(1024, 3), array(1024))),
    }
