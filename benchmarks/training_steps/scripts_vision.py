"""Scripts about images: convolutions with the normalisations behind them, patches, transformers."""

from __future__ import annotations

from typing import Any

from benchmarks.training_steps.drawing import Draw, script


def _images(draw: Draw, batch: int, size: int = 8, channels: int = 3) -> tuple[Any, Any]:
    return draw.normal(batch, size, size, channels), draw.integers(5, batch)


@script("flax", "optax")
def cnn_nnx_batchnorm(draw: Draw, steps: int) -> Any:
    """Convolutions with bias before BatchNorm, dropout, SGD with momentum."""
    import jax.numpy as jnp
    import optax
    from flax import nnx

    width, activation = draw.choose(6, 8, 12), draw.activation()

    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.conv1 = nnx.Conv(3, width, (3, 3), rngs=rngs)
            self.norm1 = nnx.BatchNorm(width, rngs=rngs)
            self.conv2 = nnx.Conv(width, width, (3, 3), strides=2, rngs=rngs)
            self.norm2 = nnx.BatchNorm(width, momentum=draw.choose(0.9, 0.99), rngs=rngs)
            self.drop = nnx.Dropout(draw.choose(0.1, 0.3), rngs=rngs)
            self.head = nnx.Linear(width, 5, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = activation(self.norm1(self.conv1(x)))
            x = activation(self.norm2(self.conv2(x)))
            return self.head(self.drop(x.mean((1, 2))))

    model = Net(nnx.Rngs(draw.seed()))
    optimizer = nnx.Optimizer(model, draw.optimizer("momentum", "nesterov", "adam"), wrt=nnx.Param)

    @nnx.jit
    def train_step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        def loss_fn(model: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return loss

    loss = jnp.zeros(())
    for _ in range(steps):
        loss = train_step(model, optimizer, *_images(draw, 8))
    return loss


@script("flax", "optax")
def resnet_linen(draw: Draw, steps: int) -> Any:
    """Residual blocks with BatchNorm or GroupNorm; the last scale of each block starts at 0."""
    import flax.linen as nn
    import jax
    import optax

    width, group = draw.choose(8, 16), draw.choose(True, False)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            def norm(**options: Any) -> Any:
                return nn.GroupNorm(4, **options) if group else nn.BatchNorm(False, **options)

            x = nn.Conv(width, (3, 3), use_bias=group)(x)
            for _ in range(2):
                y = nn.relu(norm()(nn.Conv(width, (3, 3))(x)))
                y = norm(scale_init=nn.initializers.zeros)(nn.Conv(width, (3, 3))(y))
                x = nn.relu(x + y)
            return nn.Dense(5)(x.mean((1, 2)))

    net, tx = Net(), draw.optimizer("momentum", "adamw", "lars")
    variables = net.init(draw.key(), draw.normal(1, 8, 8, 3))
    params, stats = variables["params"], variables.get("batch_stats", {})
    state = tx.init(params)

    @jax.jit
    def train_step(params: Any, stats: Any, state: Any, x: Any, y: Any) -> Any:
        def loss_fn(params: Any) -> Any:
            logits, new = net.apply({"params": params, "batch_stats": stats}, x, mutable=["batch_stats"])
            labels = optax.smooth_labels(jax.nn.one_hot(y, 5), 0.1)
            return optax.softmax_cross_entropy(logits, labels).mean(), new.get("batch_stats", {})

        (loss, new), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), new, moved, loss

    loss: Any = None
    for _ in range(steps):
        params, stats, state, loss = train_step(params, stats, state, *_images(draw, 6))
    return loss


@script("haiku", "optax")
def convnet_haiku(draw: Draw, steps: int) -> Any:
    """Haiku, with BatchNorm as state and average pooling."""
    import haiku as hk
    import jax
    import optax

    width, activation = draw.choose(6, 10), draw.activation()

    def forward(x: Any) -> Any:
        x = hk.Conv2D(width, 3)(x)
        x = hk.BatchNorm(True, True, draw_decay)(x, is_training=True)
        x = hk.avg_pool(activation(x), (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        return hk.nets.MLP([16, 5], activation=activation)(hk.Flatten()(x))

    draw_decay = draw.choose(0.9, 0.99)
    net, tx = hk.without_apply_rng(hk.transform_with_state(forward)), draw.optimizer("adam", "rmsprop", "sgd")
    params, stats = net.init(draw.key(), draw.normal(2, 8, 8, 3))
    state = tx.init(params)

    @jax.jit
    def train_step(params: Any, stats: Any, state: Any, x: Any, y: Any) -> Any:
        def loss_fn(params: Any) -> Any:
            logits, new = net.apply(params, stats, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), new

        (loss, new), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), new, moved, loss

    loss: Any = None
    for _ in range(steps):
        params, stats, state, loss = train_step(params, stats, state, *_images(draw, 4))
    return loss


@script("equinox", "optax")
def cnn_equinox_groupnorm(draw: Draw, steps: int) -> Any:
    """Equinox: a bias before GroupNorm, max pooling, a step over a batch by vmap."""
    import equinox as eqx
    import jax
    import optax

    width = draw.choose(4, 8)
    keys = jax.random.split(draw.key(), 3)
    model = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(3, width, 3, padding=1, key=keys[0]),
            eqx.nn.GroupNorm(2, width),
            eqx.nn.Lambda(draw.activation()),
            eqx.nn.MaxPool2d(2, 2),
            eqx.nn.Conv2d(width, width, 3, key=keys[1]),
            eqx.nn.Lambda(jax.numpy.ravel),
            eqx.nn.Linear(4 * width, 5, key=keys[2]),
        ]
    )
    tx = draw.optimizer("adam", "lion", "momentum")
    state = tx.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def train_step(model: Any, state: Any, x: Any, y: Any) -> Any:
        def loss_fn(model: Any) -> Any:
            logits = jax.vmap(model)(x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, grads = eqx.filter_value_and_grad(loss_fn)(model)
        updates, moved = tx.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), moved, loss

    loss: Any = None
    for _ in range(steps):
        x, y = _images(draw, 6)
        model, state, loss = train_step(model, state, x.transpose(0, 3, 1, 2), y)
    return loss


@script("flax", "optax")
def vit_linen(draw: Draw, steps: int) -> Any:
    """A vision transformer with a class token; the head starts at 0 or not."""
    import flax.linen as nn
    import jax
    import optax

    width = draw.choose(16, 24)
    head = draw.choose(nn.initializers.zeros, nn.initializers.lecun_normal())

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            x = nn.Conv(width, (4, 4), strides=(4, 4))(x).reshape(x.shape[0], -1, width)
            token = self.param("token", nn.initializers.zeros, (1, 1, width))
            x = jax.numpy.concatenate([token.repeat(x.shape[0], 0), x], 1)
            x = x + self.param("position", nn.initializers.normal(0.02), (1, x.shape[1], width))
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=2)(y, y)
            x = x + nn.Dense(width)(nn.gelu(nn.Dense(2 * width)(nn.LayerNorm()(x))))
            return nn.Dense(5, kernel_init=head)(nn.LayerNorm()(x)[:, 0])

    net, tx = Net(), draw.optimizer("adamw", "lion", "lamb")
    params = net.init(draw.key(), draw.normal(1, 8, 8, 3))
    state = tx.init(params)

    @jax.jit
    def train_step(params: Any, state: Any, x: Any, y: Any) -> Any:
        def loss_fn(params: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(params, x), y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), moved, loss, optax.global_norm(grads)

    loss: Any = None
    for _ in range(steps):
        params, state, loss, _ = train_step(params, state, *_images(draw, 4))
    return loss


@script("optax")
def batchnorm_by_hand(draw: Draw, steps: int) -> Any:
    """Dense layers with bias before BatchNorm in plain JAX; the variance in either of its two forms."""
    import jax
    import jax.numpy as jnp
    import optax

    width, eps, short = draw.choose(12, 20), draw.choose(1e-5, 1e-3), draw.choose(True, False)
    activation, tx = draw.activation(), draw.optimizer("adam", "momentum", "adamw")
    params = {
        "layers": [
            {"w": draw.weights(n, width), "b": jnp.zeros(width), "g": jnp.ones(width), "o": jnp.zeros(width)}
            for n in (10, width)
        ],
        "head": {"w": draw.weights(width, 1), "b": jnp.zeros(1)},
    }
    state = tx.init(params)

    def norm(x: Any, layer: Any) -> Any:
        mean = x.mean(0)
        var = (x * x).mean(0) - mean * mean if short else ((x - mean) ** 2).mean(0)
        return (x - mean) / jnp.sqrt(var + eps) * layer["g"] + layer["o"]

    @jax.jit
    def train_step(params: Any, state: Any, x: Any, y: Any) -> Any:
        def loss_fn(params: Any) -> Any:
            h = x
            for layer in params["layers"]:
                h = activation(norm(h @ layer["w"] + layer["b"], layer))
            return optax.huber_loss((h @ params["head"]["w"] + params["head"]["b"])[:, 0], y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), moved, loss

    loss: Any = None
    for _ in range(steps):
        params, state, loss = train_step(params, state, draw.normal(16, 10), draw.normal(16))
    return loss
