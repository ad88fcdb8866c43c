"""Small models twice: as Flax writes them in JAX, and as PyTorch's hooks see them, here in NumPy.

The second ones share nothing with the first but the weights: linear weights are (out, in), images NCHW,
variances and softmax by other formulas. A fault may be planted in one layer of the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any
Weights = dict[str, Any]


@dataclass
class Hooked:
    """What hooks write, and the fault.

    Attributes:
        faulty: number of the layer to plant it in, of those that can have it.
        fault: `eps`, `axis`, `scale`, `padding`, `dtype`, `bias`, `gelu`; empty for none.
        arrays: results by name, in order.
        planted: name of the layer that has it; empty as long as there is none.
    """

    fault: str = ""
    faulty: int = 0
    arrays: dict[str, Array] = field(default_factory=dict)
    planted: str = ""
    _met: int = 0

    def has(self, name: str, fault: str) -> bool:
        """Whether the layer `name`, which can have `fault`, has it."""
        if self.fault != fault:
            return False
        self._met += 1
        if self._met - 1 == self.faulty:
            self.planted = name
        return self.planted == name

    def hook(self, name: str, value: Array) -> Array:
        """Write the result of a module."""
        self.arrays[f"{len(self.arrays):04}.{name}"] = np.ascontiguousarray(value)
        return value

    # Modules as PyTorch computes them, in f32.

    def linear(self, name: str, x: Array, w: Array, b: Array) -> Array:
        """`nn.Linear`, its weight (out, in)."""
        weight = np.ascontiguousarray(w.T)
        if self.has(name, "dtype"):
            x, weight = (np.asarray(v).astype(np.float16).astype(np.float32) for v in (x, weight))
        y = np.einsum("...i,oi->...o", x, weight, optimize=True)
        return self.hook(name, y if self.has(name, "bias") else y + b)

    def layer_norm(self, name: str, x: Array, s: Array, b: Array) -> Array:
        """`nn.LayerNorm`: the variance from the sum of squares."""
        axis = -2 if self.has(name, "axis") else -1
        mean = x.mean(axis, keepdims=True)
        variance = np.var(x, axis=axis, keepdims=True)
        eps = np.float32(1e-6 if self.has(name, "eps") else 1e-5)
        y = (x - mean) / np.sqrt(variance + eps)
        return self.hook(name, y + b if self.has(name, "scale") else y * s + b)

    def rms_norm(self, name: str, x: Array, s: Array) -> Array:
        """`nn.RMSNorm`."""
        eps = np.float32(1e-5 if self.has(name, "eps") else 1e-6)
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
        return self.hook(name, y if self.has(name, "scale") else y * s)

    def gelu(self, name: str, x: Array) -> Array:
        """`nn.GELU(approximate="tanh")`, or the exact one, which many take for the same."""
        if self.has(name, "gelu"):
            from math import erf

            value = x * np.float32(0.5) * (1 + np.vectorize(erf)(x / np.sqrt(2))).astype(np.float32)
        else:
            inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3)
            value = np.float32(0.5) * x * (1 + np.tanh(inner))
        return self.hook(name, value.astype(np.float32))

    def softmax(self, name: str, x: Array) -> Array:
        """Without the maximum taken off first."""
        e = np.exp(x)
        return self.hook(name, e / e.sum(-2 if self.has(name, "axis") else -1, keepdims=True))

    def conv(self, name: str, x: Array, w: Array, b: Array) -> Array:
        """`nn.Conv2d(padding=…)`: NCHW, weights OIHW, by patches."""
        weight = np.ascontiguousarray(w.transpose(3, 2, 0, 1))
        k = w.shape[0]
        low = (k - 1) // 2 + self.has(name, "padding")
        padded = np.pad(x, ((0, 0), (0, 0), (low, k - 1 - low), (low, k - 1 - low)))
        patches = np.lib.stride_tricks.sliding_window_view(padded, (k, k), axis=(2, 3))
        y = np.einsum("bchwij,ocij->bohw", patches, weight, optimize=True).astype(np.float32)
        return self.hook(name, y if self.has(name, "bias") else y + b[:, None, None])

    def batch_norm(self, name: str, x: Array, s: Array, b: Array, mean: Array, var: Array) -> Array:
        """`nn.BatchNorm2d` in evaluation: one product and one sum per channel."""
        eps = np.float32(1e-3 if self.has(name, "eps") else 1e-5)
        factor = (1 if self.has(name, "scale") else s) / np.sqrt(var + eps)
        shift = b - mean * factor
        return self.hook(name, (x * factor[:, None, None] + shift[:, None, None]).astype(np.float32))


Model = tuple[Callable[..., Any], Callable[[Hooked, Weights, Array], Array], Weights, Array]


class _Drawn:
    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, *shape: int, scale: float = 1.0, shift: float = 0.0) -> Array:
        return (self._rng.standard_normal(shape) * scale + shift).astype(np.float32)

    def linear(self, i: int, o: int) -> tuple[Array, Array]:
        return self(i, o, scale=i**-0.5), self(o, scale=0.1)

    def norm(self, n: int) -> tuple[Array, Array]:
        return self(n, scale=0.2, shift=1), self(n, scale=0.1)


def mlp(seed: int) -> Model:
    """Blocks of LayerNorm, Dense, GELU, Dense with a residual."""
    import jax
    import jax.numpy as jnp

    draw = _Drawn(seed)
    width, wide, depth = 24, 48, 3
    weights = {
        str(n): {"ln": draw.norm(width), "fc1": draw.linear(width, wide), "fc2": draw.linear(wide, width)}
        for n in range(depth)
    }

    def model(p: Any, x: Any) -> Any:
        with jax.named_scope("Mlp"):
            for n in range(depth):
                with jax.named_scope(f"Block_{n}"):
                    with jax.named_scope("LayerNorm_0"):
                        h = _layer_norm(jnp, jax, x, *p[str(n)]["ln"])
                    with jax.named_scope("Dense_0"):
                        h = h @ p[str(n)]["fc1"][0] + p[str(n)]["fc1"][1]
                    h = jax.nn.gelu(h)
                    with jax.named_scope("Dense_1"):
                        h = h @ p[str(n)]["fc2"][0] + p[str(n)]["fc2"][1]
                    x = x + h
            return x

    def hooked(t: Hooked, p: Weights, x: Array) -> Array:
        for n in range(depth):
            h = t.layer_norm(f"blocks.{n}.norm", x, *p[str(n)]["ln"])
            h = t.linear(f"blocks.{n}.fc1", h, *p[str(n)]["fc1"])
            h = t.gelu(f"blocks.{n}.act", h)
            h = t.linear(f"blocks.{n}.fc2", h, *p[str(n)]["fc2"])
            x = t.hook(f"blocks.{n}", x + h)
        return x

    return model, hooked, weights, draw(10, width)


def transformer(seed: int) -> Model:
    """Attention and a gated MLP, both behind RMSNorm."""
    import jax
    import jax.numpy as jnp

    draw = _Drawn(seed)
    width, heads, length, depth = 32, 4, 9, 2
    names = ("q", "k", "v", "o", "up", "gate", "down")
    sizes = {"up": (width, 2 * width), "gate": (width, 2 * width), "down": (2 * width, width)}
    weights = {
        str(n): {name: draw.linear(*sizes.get(name, (width, width))) for name in names}
        | {"n1": draw.norm(width)[0], "n2": draw.norm(width)[0]}
        for n in range(depth)
    }

    def dense(p: Any, x: Any) -> Any:
        return x @ p[0] + p[1]

    def model(p: Any, x: Any) -> Any:
        for n in range(depth):
            own = p[str(n)]
            with jax.named_scope(f"Layer_{n}"):
                with jax.named_scope("RMSNorm_0"):
                    h = _rms_norm(jnp, jax, x, own["n1"])
                with jax.named_scope("Attention"):
                    parts = []
                    for name in "qkv":
                        with jax.named_scope(name):
                            parts.append(dense(own[name], h).reshape(2, length, heads, -1))
                    q, k, v = parts
                    logits = jnp.einsum("blhd,bmhd->bhlm", q, k) / jnp.sqrt(jnp.float32(width // heads))
                    h = jnp.einsum("bhlm,bmhd->blhd", jax.nn.softmax(logits), v).reshape(2, length, width)
                    with jax.named_scope("o"):
                        h = dense(own["o"], h)
                x = x + h
                with jax.named_scope("RMSNorm_1"):
                    h = _rms_norm(jnp, jax, x, own["n2"])
                with jax.named_scope("up"):
                    up = dense(own["up"], h)
                with jax.named_scope("gate"):
                    gate = dense(own["gate"], h)
                with jax.named_scope("down"):
                    h = dense(own["down"], up * jax.nn.silu(gate))
                x = x + h
        return x

    def hooked(t: Hooked, p: Weights, x: Array) -> Array:
        size = width // heads
        for n in range(depth):
            own, at = p[str(n)], f"layers.{n}"
            h = t.rms_norm(f"{at}.norm1", x, own["n1"])
            q, k, v = (
                t.linear(f"{at}.attn.{name}_proj", h, *own[name])
                .reshape(2, length, heads, size)
                .transpose(0, 2, 1, 3)
                for name in "qkv"
            )
            is_unscaled = t.has(f"{at}.attn.softmax", "scale")
            logits = q @ k.transpose(0, 1, 3, 2) * np.float32(1 if is_unscaled else size**-0.5)
            h = t.softmax(f"{at}.attn.softmax", logits) @ v
            h = t.linear(f"{at}.attn.o_proj", h.transpose(0, 2, 1, 3).reshape(2, length, width), *own["o"])
            x = x + h
            h = t.rms_norm(f"{at}.norm2", x, own["n2"])
            gate = t.linear(f"{at}.mlp.gate_proj", h, *own["gate"])
            up = t.linear(f"{at}.mlp.up_proj", h, *own["up"])
            h = t.linear(f"{at}.mlp.down_proj", up * (gate / (1 + np.exp(-gate))), *own["down"])
            x = t.hook(at, x + h)
        return x

    return model, hooked, weights, draw(2, length, width)


def convolutional(seed: int) -> Model:
    """Convolutions, BatchNorm and ReLU, a residual, the mean over the image, a linear layer."""
    import jax

    draw = _Drawn(seed)
    sizes = [(3, 8), (8, 8), (8, 8)]
    weights = {
        str(n): {
            "conv": (draw(3, 3, i, o, scale=(9 * i) ** -0.5), draw(o, scale=0.1)),
            "bn": (*draw.norm(o), draw(o, scale=0.3), np.abs(draw(o, scale=0.3, shift=1)) + np.float32(0.1)),
        }
        for n, (i, o) in enumerate(sizes)
    } | {"head": draw.linear(8, 5)}

    def model(p: Any, x: Any) -> Any:
        for n in range(len(sizes)):
            w, b = p[str(n)]["conv"]
            with jax.named_scope(f"Conv_{n}"):
                h = jax.lax.conv_general_dilated(
                    x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
                h = h + b
            s, shift, mean, variance = p[str(n)]["bn"]
            with jax.named_scope(f"BatchNorm_{n}"):
                h = (h - mean) * jax.lax.rsqrt(variance + 1e-5) * s + shift
            h = jax.nn.relu(h)
            x = h if n == 0 else x + h
        x = x.mean((1, 2))
        with jax.named_scope("Dense_0"):
            return x @ p["head"][0] + p["head"][1]

    def hooked(t: Hooked, p: Weights, x: Array) -> Array:
        x = x.transpose(0, 3, 1, 2)
        for n in range(len(sizes)):
            h = t.conv(f"conv{n + 1}", x, *p[str(n)]["conv"])
            h = t.batch_norm(f"bn{n + 1}", h, *p[str(n)]["bn"])
            h = t.hook(f"relu{n + 1}", np.maximum(h, 0))
            x = h if n == 0 else x + h
        return t.linear("fc", t.hook("pool", x.mean((2, 3))), *p["head"])

    return model, hooked, weights, draw(2, 10, 10, 3)


def scanned(seed: int) -> Model:
    """The blocks of a model as the iterations of one loop."""
    import jax
    import jax.numpy as jnp

    draw = _Drawn(seed)
    width, depth = 20, 4
    blocks = [{"ln": draw.norm(width), "fc": draw.linear(width, width)} for _ in range(depth)]
    weights: Weights = {
        name: tuple(np.stack([block[name][part] for block in blocks]) for part in (0, 1))
        for name in ("ln", "fc")
    }

    def model(p: Any, x: Any) -> Any:
        def body(x: Any, own: Any) -> Any:
            with jax.named_scope("Block"):
                with jax.named_scope("LayerNorm_0"):
                    h = _layer_norm(jnp, jax, x, *own["ln"])
                with jax.named_scope("Dense_0"):
                    h = h @ own["fc"][0] + own["fc"][1]
                return x + jax.nn.relu(h), None

        return jax.lax.scan(body, x, p)[0]

    def hooked(t: Hooked, p: Weights, x: Array) -> Array:
        for n in range(depth):
            own = {name: tuple(part[n] for part in p[name]) for name in p}
            h = t.layer_norm(f"layers.{n}.norm", x, *own["ln"])
            h = t.linear(f"layers.{n}.linear", h, *own["fc"])
            x = t.hook(f"layers.{n}", x + np.maximum(h, 0))
        return x

    return model, hooked, weights, draw(6, width)


def _layer_norm(jnp: Any, jax: Any, x: Any, s: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = (x * x).mean(-1, keepdims=True) - mean * mean
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * s + b


def _rms_norm(jnp: Any, jax: Any, x: Any, s: Any) -> Any:
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * s


#: Each with the faults that its layers can have.
MODELS: dict[str, tuple[Callable[[int], Model], tuple[str, ...]]] = {
    "mlp": (mlp, ("eps", "axis", "scale", "dtype", "bias", "gelu")),
    "transformer": (transformer, ("eps", "axis", "scale", "dtype", "bias")),
    "convolutional": (convolutional, ("eps", "scale", "padding", "bias")),
    "scanned": (scanned, ("eps", "axis", "scale", "dtype", "bias")),
}
