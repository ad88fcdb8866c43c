"""Scripts without labels: autoencoders, adversaries, diffusion, contrast, flows, codes, distillation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks.training_steps.drawing import Draw, script
from benchmarks.training_steps.loops import fit


def _mlp(draw: Draw, *sizes: int) -> list[dict[str, Any]]:
    import jax.numpy as jnp

    return [{"w": draw.weights(n, m), "b": jnp.zeros(m)} for n, m in pairwise(sizes)]


def _apply(layers: Any, x: Any, activation: Any) -> Any:
    for number, layer in enumerate(layers):
        x = x @ layer["w"] + layer["b"]
        x = activation(x) if number < len(layers) - 1 else x
    return x


@script("optax")
def variational_autoencoder(draw: Draw, steps: int) -> Any:
    """The reparametrised sample, the divergence from the prior, binary cross entropy."""
    import jax
    import jax.numpy as jnp
    import optax

    width, code, activation = draw.choose(12, 20), draw.choose(2, 4), draw.activation()
    params = {"encoder": _mlp(draw, 10, width, 2 * code), "decoder": _mlp(draw, code, width, 10)}
    beta, key = draw.choose(1.0, 0.1), draw.key()

    def loss_fn(p: Any, x: Any, key: Any) -> Any:
        mean, log_var = jnp.split(_apply(p["encoder"], x, activation), 2, -1)
        z = mean + jnp.exp(0.5 * log_var) * jax.random.normal(key, mean.shape)
        missed = optax.sigmoid_binary_cross_entropy(_apply(p["decoder"], z, activation), x).sum(-1)
        divergence = -0.5 * (1 + log_var - mean**2 - jnp.exp(log_var)).sum(-1)
        return (missed + beta * divergence).mean()

    def batch() -> tuple[Any, Any]:
        return draw.integers(2, 6, 10).astype(jnp.float32), jax.random.fold_in(key, draw.seed())

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "adamw", "rmsprop"), batch)


@script("flax", "optax")
def vae_nnx_batchnorm(draw: Draw, steps: int) -> Any:
    """nnx modules with BatchNorm after a Linear with bias, noise from the module's own stream."""
    import jax.numpy as jnp
    from flax import nnx

    width = draw.choose(12, 16)

    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.enter, self.norm = nnx.Linear(8, width, rngs=rngs), nnx.BatchNorm(width, rngs=rngs)
            self.code, self.back = nnx.Linear(width, 4, rngs=rngs), nnx.Linear(2, 8, rngs=rngs)
            self.rngs = rngs

        def __call__(self, x: Any) -> Any:
            mean, log_std = jnp.split(self.code(nnx.silu(self.norm(self.enter(x)))), 2, -1)
            noise = self.rngs.noise.normal(mean.shape)
            return self.back(mean + jnp.exp(log_std) * noise), mean, log_std

    model = Net(nnx.Rngs(draw.seed(), noise=draw.seed()))
    optimizer = nnx.Optimizer(model, draw.optimizer("adam", "adamw", "momentum"), wrt=nnx.Param)

    @nnx.jit
    def train_step(model: Any, optimizer: Any, x: Any) -> Any:
        def loss_fn(model: Any) -> Any:
            back, mean, log_std = model(x)
            divergence = 0.5 * (jnp.exp(2 * log_std) + mean**2 - 1 - 2 * log_std).sum(-1)
            return (((back - x) ** 2).sum(-1) + divergence).mean()

        loss, grads = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, grads)
        return loss

    loss: Any = None
    for _ in range(steps):
        loss = train_step(model, optimizer, draw.normal(8, 8))
    return loss


@script("optax")
def wgan_gradient_penalty(draw: Draw, steps: int) -> Any:
    """A critic with a penalty on its gradient, and the generator, in one step."""
    import jax
    import jax.numpy as jnp
    import optax

    width, activation = draw.choose(8, 12), draw.choose(jax.nn.leaky_relu, jnp.tanh, jax.nn.silu)
    nets = {"g": _mlp(draw, 3, width, 5), "d": _mlp(draw, 5, width, 1)}
    tx = draw.optimizer("adam", "rmsprop")
    states, weight = {name: tx.init(net) for name, net in nets.items()}, draw.choose(1.0, 10.0)

    @jax.jit
    def train_step(nets: Any, states: Any, x: Any, z: Any, mix: Any) -> Any:
        def critic(d: Any, x: Any) -> Any:
            return _apply(d, x, activation)[..., 0]

        def d_loss(d: Any) -> Any:
            fake = _apply(nets["g"], z, activation)
            between = mix * x + (1 - mix) * fake
            slopes = jax.vmap(jax.grad(critic, 1), (None, 0))(d, between)
            norms = jnp.sqrt((slopes**2).sum(-1) + 1e-12)
            return critic(d, fake).mean() - critic(d, x).mean() + weight * ((norms - 1) ** 2).mean()

        def g_loss(g: Any) -> Any:
            return -critic(nets["d"], _apply(g, z, activation)).mean()

        new, moved, losses = {}, {}, {}
        for name, loss_fn in (("d", d_loss), ("g", g_loss)):
            losses[name], grads = jax.value_and_grad(loss_fn)(nets[name])
            updates, moved[name] = tx.update(grads, states[name], nets[name])
            new[name] = optax.apply_updates(nets[name], updates)
        return new, moved, losses

    losses: Any = None
    for _ in range(steps):
        batch = draw.normal(6, 5), draw.normal(6, 3), jnp.abs(draw.normal(6, 1)) % 1
        nets, states, losses = train_step(nets, states, *batch)
    return losses["d"]


@script("flax", "optax")
def diffusion_with_ema(draw: Draw, steps: int) -> Any:
    """Denoising with a time embedding; weights averaged exponentially; donated state."""
    from functools import partial

    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import optax

    width, decay = draw.choose(12, 16), draw.choose(0.99, 0.999)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any, t: Any) -> Any:
            angles = t[:, None] * jnp.exp(-jnp.linspace(0, 4, 4))
            time = nn.Dense(width)(
                nn.silu(nn.Dense(width)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)))
            )
            h = nn.Conv(width, (3, 3))(x) + time[:, None, None]
            h = nn.Conv(width, (3, 3))(nn.silu(nn.GroupNorm(4)(h)))
            return nn.Conv(1, (3, 3), kernel_init=last)(nn.silu(nn.GroupNorm(4)(h)))

    last = draw.choose(nn.initializers.zeros, nn.initializers.lecun_normal())
    net, tx = Net(), draw.optimizer("adam", "adafactor", "adamw")
    params = net.init(draw.key(), draw.normal(1, 6, 6, 1), jnp.zeros(1))
    state, average = tx.init(params), jax.tree.map(jnp.copy, params)
    alphas = jnp.cumprod(1 - jnp.linspace(1e-3, 0.2, 20))

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def train_step(params: Any, state: Any, average: Any, x: Any, key: Any) -> Any:
        one, two = jax.random.split(key)
        t = jax.random.randint(one, (x.shape[0],), 0, 20)
        noise, a = jax.random.normal(two, x.shape), alphas[t][:, None, None, None]

        def loss_fn(params: Any) -> Any:
            return ((net.apply(params, jnp.sqrt(a) * x + jnp.sqrt(1 - a) * noise, t) - noise) ** 2).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        return params, state, jax.tree.map(lambda e, p: decay * e + (1 - decay) * p, average, params), loss

    loss: Any = None
    for _ in range(steps):
        params, state, average, loss = train_step(params, state, average, draw.normal(3, 6, 6, 1), draw.key())
    return loss


@script("optax")
def simclr_contrast(draw: Draw, steps: int) -> Any:
    """Two views, normalised embeddings, a learned temperature."""
    import jax.numpy as jnp
    import optax

    width, activation = draw.choose(12, 16), draw.activation()
    params = {"net": _mlp(draw, 8, width, 6), "log_t": jnp.log(jnp.float32(draw.choose(0.07, 0.5)))}

    def loss_fn(p: Any, a: Any, b: Any) -> Any:
        z = _apply(p["net"], jnp.concatenate([a, b]), activation)
        z = z / jnp.linalg.norm(z, axis=-1, keepdims=True)
        scores = z @ z.T / jnp.exp(p["log_t"])
        scores = jnp.where(jnp.eye(len(z), dtype=bool), -jnp.inf, scores)
        other = jnp.roll(jnp.arange(len(z)), len(z) // 2)
        return optax.softmax_cross_entropy_with_integer_labels(scores, other).mean()

    def batch() -> tuple[Any, Any]:
        x = draw.normal(5, 8)
        return x + draw.normal(5, 8, scale=0.1), x + draw.normal(5, 8, scale=0.1)

    return fit(draw, steps, params, loss_fn, draw.optimizer("lars", "adamw", "lamb"), batch)


@script("optax")
def coupling_flow(draw: Draw, steps: int) -> Any:
    """Affine couplings: an exact likelihood by the logarithm of the determinant."""
    import jax.numpy as jnp

    width, activation = draw.choose(8, 12), draw.activation()
    params = [_mlp(draw, 3, width, 6) for _ in range(draw.choose(2, 3))]

    def loss_fn(params: Any, x: Any) -> Any:
        log_det = 0.0
        for layers in params:
            a, b = jnp.split(x, 2, -1)
            log_scale, shift = jnp.split(_apply(layers, a, activation), 2, -1)
            log_scale = jnp.tanh(log_scale)
            x = jnp.concatenate([b * jnp.exp(log_scale) + shift, a], -1)
            log_det = log_det + log_scale.sum(-1)
        return (0.5 * (x**2).sum(-1) + 3 * jnp.log(2 * jnp.pi) - log_det).mean()

    return fit(
        draw, steps, params, loss_fn, draw.optimizer("adam", "sgd", "lion"), lambda: (draw.normal(8, 6),)
    )


@script("optax")
def vector_quantised(draw: Draw, steps: int) -> Any:
    """The nearest code by argmin, gradients straight through, a commitment loss."""
    import jax

    width, codes, activation = draw.choose(8, 12), draw.choose(6, 9), draw.activation()
    params = {"in": _mlp(draw, 6, width, 3), "codes": draw.normal(codes, 3), "out": _mlp(draw, 3, width, 6)}

    def loss_fn(p: Any, x: Any) -> Any:
        z = _apply(p["in"], x, activation)
        distances = (z**2).sum(-1, keepdims=True) - 2 * z @ p["codes"].T + (p["codes"] ** 2).sum(-1)
        code = p["codes"][distances.argmin(-1)]
        through = z + jax.lax.stop_gradient(code - z)
        commit = ((jax.lax.stop_gradient(code) - z) ** 2).mean()
        learn = ((code - jax.lax.stop_gradient(z)) ** 2).mean()
        return ((_apply(p["out"], through, activation) - x) ** 2).mean() + learn + 0.25 * commit

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "momentum"), lambda: (draw.normal(8, 6),))


@script("optax")
def distillation_masked(draw: Draw, steps: int) -> Any:
    """A student of a frozen teacher at a temperature, and a mask of the weights that are trained."""
    import jax
    import jax.numpy as jnp
    import optax

    width, activation, t = draw.choose(10, 14), draw.activation(), draw.choose(2.0, 4.0)
    teacher, params = _mlp(draw, 7, 2 * width, 5), _mlp(draw, 7, width, 5)
    chosen = optax.masked(
        draw.optimizer("adamw", "momentum"), jax.tree.map(lambda leaf: leaf.ndim > 1, params)
    )

    def loss_fn(p: Any, x: Any, y: Any) -> Any:
        logits = _apply(p, x, activation)
        soft = jax.nn.softmax(_apply(teacher, x, activation) / t)
        hard = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
        gap = (soft * (jnp.log(soft + 1e-9) - jax.nn.log_softmax(logits / t))).sum(-1).mean()
        return 0.5 * hard + 0.5 * t * t * gap

    return fit(draw, steps, params, loss_fn, chosen, lambda: (draw.normal(8, 7), draw.integers(5, 8)))
