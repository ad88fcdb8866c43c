"""Scripts about text: attention with and without biases, tied embeddings, experts, layers in a scan."""

from __future__ import annotations

from typing import Any

from benchmarks.training_steps.drawing import Draw, script
from benchmarks.training_steps.loops import fit

_VOCABULARY = 31


def layer_norm(x: Any, p: Any, eps: float = 1e-5) -> Any:
    """With scale and offset, as GPT-2 has it."""
    import jax

    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + eps) * p["scale"] + p["offset"]


def _norm(width: int) -> dict[str, Any]:
    import jax.numpy as jnp

    return {"scale": jnp.ones(width), "offset": jnp.zeros(width)}


def _dense(draw: Draw, n: int, m: int) -> dict[str, Any]:
    import jax.numpy as jnp

    return {"w": draw.weights(n, m), "b": jnp.zeros(m)}


def fused_attention(x: Any, p: Any, heads: int) -> Any:
    """Causal attention whose queries, keys and values come from one product with one bias."""
    import jax
    import jax.numpy as jnp

    length, width = x.shape[-2:]
    q, k, v = jnp.split(x @ p["qkv"]["w"] + p["qkv"]["b"], 3, -1)
    q, k, v = (a.reshape(*a.shape[:-1], heads, width // heads) for a in (q, k, v))
    scores = jnp.einsum("...qhd,...khd->...hqk", q, k) / (width // heads) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("...hqk,...khd->...qhd", jax.nn.softmax(scores, -1), v)
    return mixed.reshape(x.shape) @ p["out"]["w"] + p["out"]["b"]


def block_parameters(draw: Draw, width: int) -> dict[str, Any]:
    """Of a layer of GPT-2."""
    return {
        "norm1": _norm(width),
        "attention": {"qkv": _dense(draw, width, 3 * width), "out": _dense(draw, width, width)},
        "norm2": _norm(width),
        "up": _dense(draw, width, 2 * width),
        "down": _dense(draw, 2 * width, width),
    }


def block(x: Any, p: Any, heads: int, activation: Any) -> Any:
    """A layer of GPT-2."""
    x = x + fused_attention(layer_norm(x, p["norm1"]), p["attention"], heads)
    h = activation(layer_norm(x, p["norm2"]) @ p["up"]["w"] + p["up"]["b"])
    return x + h @ p["down"]["w"] + p["down"]["b"]


def _cross_entropy(logits: Any, tokens: Any) -> Any:
    import optax

    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()


@script("optax")
def gpt_fused_qkv_tied(draw: Draw, steps: int) -> Any:
    """GPT-2 in plain JAX: fused qkv with bias, tied embeddings, donated state."""
    width, heads, activation = draw.choose(16, 24), draw.choose(2, 4), draw.activation()
    params = {
        "embedding": draw.normal(_VOCABULARY, width, scale=draw.choose(0.02, 0.5)),
        "position": draw.normal(12, width, scale=0.02),
        "blocks": [block_parameters(draw, width) for _ in range(2)],
        "norm": _norm(width),
    }

    def loss_fn(params: Any, tokens: Any) -> Any:
        x = params["embedding"][tokens] + params["position"]
        for p in params["blocks"]:
            x = block(x, p, heads, activation)
        return _cross_entropy(layer_norm(x, params["norm"]) @ params["embedding"].T, tokens)

    tx = draw.optimizer("adamw", "adam", "lion")
    return fit(draw, steps, params, loss_fn, tx, lambda: (draw.integers(_VOCABULARY, 2, 12),), donate=True)


@script("optax")
def gpt_scan_remat(draw: Draw, steps: int) -> Any:
    """Layers stacked and scanned over, each recomputed in the backward pass."""
    import jax

    width, heads, activation = draw.choose(16, 24), 2, draw.activation()
    layers = [block_parameters(draw, width) for _ in range(draw.choose(2, 3))]
    params = {
        "embedding": draw.normal(_VOCABULARY, width, scale=0.1),
        "blocks": jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *layers),
        "head": draw.weights(width, _VOCABULARY),
    }

    def loss_fn(params: Any, tokens: Any) -> Any:
        @jax.checkpoint
        def body(x: Any, p: Any) -> Any:
            return block(x, p, heads, activation), None

        x, _ = jax.lax.scan(body, params["embedding"][tokens], params["blocks"])
        return _cross_entropy(x @ params["head"], tokens)

    tx = draw.optimizer("adamw", "adafactor", "momentum")
    return fit(draw, steps, params, loss_fn, tx, lambda: (draw.integers(_VOCABULARY, 2, 8),))


@script("flax", "optax")
def transformer_nnx(draw: Draw, steps: int) -> Any:
    """nnx attention, whose key bias softmax does not see, with dropout and label smoothing."""
    import optax
    from flax import nnx

    width = draw.choose(16, 32)

    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.embedding = nnx.Embed(_VOCABULARY, width, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(2, width, decode=False, rngs=rngs)
            self.norm1, self.norm2 = nnx.LayerNorm(width, rngs=rngs), nnx.LayerNorm(width, rngs=rngs)
            self.up, self.down = nnx.Linear(width, 48, rngs=rngs), nnx.Linear(48, width, rngs=rngs)
            self.drop = nnx.Dropout(0.1, rngs=rngs)

        def __call__(self, tokens: Any) -> Any:
            x = self.embedding(tokens)
            x = x + self.attention(self.norm1(x), mask=nnx.make_causal_mask(tokens))
            x = x + self.drop(self.down(nnx.gelu(self.up(self.norm2(x)))))
            return self.embedding.attend(x)

    model = Net(nnx.Rngs(draw.seed()))
    optimizer = nnx.Optimizer(model, draw.optimizer("adamw", "adam", "sgd"), wrt=nnx.Param)

    @nnx.jit
    def train_step(model: Any, optimizer: Any, tokens: Any) -> Any:
        def loss_fn(model: Any) -> Any:
            labels = optax.smooth_labels(nnx.one_hot(tokens[:, 1:], _VOCABULARY), 0.1)
            return optax.softmax_cross_entropy(model(tokens)[:, :-1], labels).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return loss

    loss: Any = None
    for _ in range(steps):
        loss = train_step(model, optimizer, draw.integers(_VOCABULARY, 2, 10))
    return loss


@script("flax", "optax")
def encoder_linen_padding(draw: Draw, steps: int) -> Any:
    """Masked language model: padding masks in attention and in the loss, separate biases of q, k and v."""
    import flax.linen as nn
    import jax.numpy as jnp
    import optax

    width = draw.choose(16, 24)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            x = nn.Embed(_VOCABULARY, width)(tokens)
            mask = nn.make_attention_mask(tokens > 0, tokens > 0)
            for _ in range(2):
                x = nn.LayerNorm()(x + nn.MultiHeadDotProductAttention(num_heads=2)(x, x, mask=mask))
                x = nn.LayerNorm()(x + nn.Dense(width)(nn.gelu(nn.Dense(2 * width)(x))))
            return nn.Dense(_VOCABULARY)(x)

    net = Net()

    def loss_fn(params: Any, tokens: Any, labels: Any) -> Any:
        losses = optax.softmax_cross_entropy_with_integer_labels(net.apply(params, tokens), labels)
        seen = (tokens > 0).astype(jnp.float32)
        return (losses * seen).sum() / jnp.maximum(seen.sum(), 1)

    def batch() -> tuple[Any, ...]:
        tokens = draw.integers(_VOCABULARY, 3, 8)
        return tokens * (jnp.arange(8) < draw.choose(5, 6, 7)), draw.integers(_VOCABULARY, 3, 8)

    params = net.init(draw.key(), batch()[0])
    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "adamw", "lamb"), batch)


@script("optax")
def rotary_rms_swiglu(draw: Draw, steps: int) -> Any:
    """As LLaMA: no biases but the key's, RMSNorm, rotary positions, SwiGLU, grouped queries."""
    import jax
    import jax.numpy as jnp

    width, heads, groups, length = draw.choose(16, 32), 4, 2, 8
    size, eps = width // heads, draw.choose(1e-6, 1e-5)
    params = {
        "embedding": draw.normal(_VOCABULARY, width, scale=0.3),
        "q": draw.weights(width, width),
        "k": draw.weights(width, groups * size), "kb": jnp.zeros(groups * size),
        "v": draw.weights(width, groups * size), "o": draw.weights(width, width),
        "gate": draw.weights(width, 2 * width), "up": draw.weights(width, 2 * width),
        "down": draw.weights(2 * width, width), "n1": jnp.ones(width), "n2": jnp.ones(width),
        "head": draw.weights(width, _VOCABULARY),
    }  # fmt: skip

    def rms(x: Any, scale: Any) -> Any:
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + eps) * scale

    def rotate(x: Any) -> Any:
        angles = jnp.arange(length)[:, None] / 10000 ** (jnp.arange(size // 2) / (size // 2))
        a, b = jnp.split(x, 2, -1)
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def loss_fn(p: Any, tokens: Any) -> Any:
        x = p["embedding"][tokens]
        y = rms(x, p["n1"])
        q = rotate((y @ p["q"]).reshape(*tokens.shape, heads, size))
        k = rotate((y @ p["k"] + p["kb"]).reshape(*tokens.shape, groups, size)).repeat(heads // groups, 2)
        v = (y @ p["v"]).reshape(*tokens.shape, groups, size).repeat(heads // groups, 2)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed.reshape(x.shape) @ p["o"]
        y = rms(x, p["n2"])
        x = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
        logits = x @ p["head"]
        z = jax.nn.logsumexp(logits, -1)
        return _cross_entropy(logits, tokens) + 1e-4 * (z**2).mean()

    tx = draw.optimizer("adamw", "lion", "adafactor")
    return fit(
        draw, steps, params, loss_fn, tx, lambda: (draw.integers(_VOCABULARY, 2, length),), donate=True
    )


@script("optax")
def mixture_of_experts(draw: Draw, steps: int) -> Any:
    """Top-k routing to experts with a capacity, and the loss that balances them."""
    import jax
    import jax.numpy as jnp

    width, experts, k = draw.choose(8, 16), 4, draw.choose(1, 2)
    params = {
        "embedding": draw.normal(_VOCABULARY, width),
        "router": draw.weights(width, experts),
        "up": draw.weights(experts, width, 2 * width),
        "down": draw.weights(experts, 2 * width, width),
        "head": draw.weights(width, _VOCABULARY),
    }

    def loss_fn(p: Any, tokens: Any) -> Any:
        x = p["embedding"][tokens].reshape(-1, width)
        gates = jax.nn.softmax(x @ p["router"])
        values, chosen = jax.lax.top_k(gates, k)
        mask = jax.nn.one_hot(chosen, experts).sum(1)
        position = jnp.cumsum(mask, 0) * mask
        kept = mask * (position <= tokens.size * k // experts + 1)
        weights = kept * gates / values.sum(-1, keepdims=True)
        h = jax.nn.relu(jnp.einsum("td,edf->tef", x, p["up"]))
        y = jnp.einsum("tef,efd,te->td", h, p["down"], weights)
        balance = experts * (mask.mean(0) * gates.mean(0)).sum()
        logits = ((x + y) @ p["head"]).reshape(*tokens.shape, _VOCABULARY)
        return _cross_entropy(logits, tokens) + 1e-2 * balance

    tx = draw.optimizer("adam", "adamw", "adafactor")
    return fit(draw, steps, params, loss_fn, tx, lambda: (draw.integers(_VOCABULARY, 2, 8),))


@script("haiku", "optax")
def transformer_haiku(draw: Draw, steps: int) -> Any:
    """Haiku's attention, with a key bias, after and before LayerNorm; dropout by a key that is split."""
    import haiku as hk
    import jax
    import optax

    width, rate = draw.choose(16, 32), draw.choose(0.1, 0.2)

    def forward(tokens: Any) -> Any:
        x = hk.Embed(_VOCABULARY, width)(tokens)
        mask = jax.numpy.tril(jax.numpy.ones((1, 1, tokens.shape[1], tokens.shape[1])))
        y = hk.LayerNorm(-1, True, True)(x)
        x = x + hk.MultiHeadAttention(
            2, width // 2, w_init=hk.initializers.VarianceScaling(1.0), model_size=width
        )(y, y, y, mask)
        y = hk.nets.MLP([2 * width, width], activation=jax.nn.gelu)(hk.LayerNorm(-1, True, True)(x))
        return hk.Linear(_VOCABULARY)(x + hk.dropout(hk.next_rng_key(), rate, y))

    net, tx, key = hk.transform(forward), draw.optimizer("adam", "adamw", "momentum"), draw.key()
    params = net.init(key, draw.integers(_VOCABULARY, 1, 8))
    state = tx.init(params)

    @jax.jit
    def train_step(params: Any, state: Any, key: Any, tokens: Any) -> Any:
        key, used = jax.random.split(key)
        loss, grads = jax.value_and_grad(lambda p: _cross_entropy(net.apply(p, used, tokens), tokens))(params)
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), moved, key, loss

    loss: Any = None
    for _ in range(steps):
        params, state, key, loss = train_step(params, state, key, draw.integers(_VOCABULARY, 2, 8))
    return loss


@script("optax")
def lora_finetuning(draw: Draw, steps: int) -> Any:
    """Low-rank additions to a frozen layer: half of each pair starts at 0; int8 weights with scales."""
    import jax.numpy as jnp

    width, rank = draw.choose(16, 24), draw.choose(2, 4)
    frozen = jnp.asarray(draw.rng.integers(-127, 128, (2, width, width)), jnp.int8)
    scales = draw.normal(2, width, scale=0.01) + 0.02
    params = [{"a": draw.weights(width, rank), "b": jnp.zeros((rank, width))} for _ in range(2)]
    activation = draw.activation()

    def loss_fn(params: Any, x: Any, y: Any) -> Any:
        for p, w, s in zip(params, frozen, scales):
            x = activation(x @ (w.astype(jnp.float32) * s) + x @ p["a"] @ p["b"] * (16 / rank))
        return ((x - y) ** 2).mean()

    def batch() -> tuple[Any, Any]:
        return draw.normal(6, width), draw.normal(6, width)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adamw", "adam", "sgd"), batch)
