"""Scripts about sequences and decisions over time: recurrent cells, state spaces, reinforcement learning."""

from __future__ import annotations

from typing import Any

from benchmarks.training_steps.drawing import Draw, script
from benchmarks.training_steps.loops import fit


@script("optax")
def lstm_by_scan(draw: Draw, steps: int) -> Any:
    """An LSTM in plain JAX, whose forget gate starts at 1."""
    import jax
    import jax.numpy as jnp

    width, length = draw.choose(8, 16), draw.choose(6, 10)
    params = {
        "w": draw.weights(4 + width, 4 * width),
        "b": jnp.zeros(4 * width).at[width : 2 * width].set(1.0),
        "head": draw.weights(width, 1),
    }

    def loss_fn(p: Any, x: Any, y: Any) -> Any:
        def cell(carry: Any, row: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([row, h], -1) @ p["w"] + p["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((x.shape[1], width))
        _, hs = jax.lax.scan(cell, (zeros, zeros), x)
        return ((hs @ p["head"])[..., 0] - y).__pow__(2).mean()

    tx = draw.optimizer("adam", "rmsprop", "sgd")
    return fit(draw, steps, params, loss_fn, tx, lambda: (draw.normal(length, 4, 4), draw.normal(length, 4)))


@script("flax", "optax")
def gru_linen(draw: Draw, steps: int) -> Any:
    """A GRU of flax over a sequence with lengths."""
    import flax.linen as nn
    import jax.numpy as jnp
    import optax

    width = draw.choose(8, 12)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x: Any, lengths: Any) -> Any:
            return nn.Dense(3)(nn.RNN(nn.GRUCell(width))(x, seq_lengths=lengths))

    net = Net()

    def loss_fn(params: Any, x: Any, lengths: Any, y: Any) -> Any:
        losses = optax.softmax_cross_entropy_with_integer_labels(net.apply(params, x, lengths), y)
        return jnp.where(jnp.arange(x.shape[1]) < lengths[:, None], losses, 0).sum() / lengths.sum()

    def batch() -> tuple[Any, ...]:
        return draw.normal(3, 6, 4), draw.integers(6, 3) + 1, draw.integers(3, 3, 6)

    params = net.init(draw.key(), *batch()[:2])
    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "nesterov", "adagrad"), batch)


@script("equinox", "optax")
def gru_equinox(draw: Draw, steps: int) -> Any:
    """Equinox cells in a scan below vmap; the last state decides."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    width = draw.choose(8, 12)
    one, two = jax.random.split(draw.key())
    model = eqx.nn.GRUCell(3, width, key=one), eqx.nn.Linear(width, 1, key=two)
    tx = draw.optimizer("adam", "lion", "momentum")
    state = tx.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit(donate="all-except-first")
    def train_step(batch: Any, model: Any, state: Any) -> Any:
        def logit(model: Any, row: Any) -> Any:
            cell, head = model
            last, _ = jax.lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(width), row)
            return head(last)[0]

        def loss_fn(model: Any) -> Any:
            x, y = batch
            return optax.sigmoid_binary_cross_entropy(jax.vmap(logit, (None, 0))(model, x), y).mean()

        loss, grads = eqx.filter_value_and_grad(loss_fn)(model)
        updates, moved = tx.update(grads, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), moved, loss

    loss: Any = None
    for _ in range(steps):
        batch = draw.normal(5, 7, 3), draw.integers(2, 5).astype(jnp.float32)
        model, state, loss = train_step(batch, model, state)
    return loss


@script("optax")
def state_space(draw: Draw, steps: int) -> Any:
    """A diagonal state space layer by an associative scan; the decay is exp(-exp(log_a))."""
    import jax
    import jax.numpy as jnp

    width, length = draw.choose(8, 12), draw.choose(8, 16)
    params = {
        "log_a": draw.normal(width, scale=0.5), "b": draw.weights(4, width), "c": draw.weights(width, 4),
        "log_dt": draw.normal(width, scale=0.3) - 2, "skip": jnp.ones(4),
    }  # fmt: skip

    def loss_fn(p: Any, x: Any, y: Any) -> Any:
        dt = jax.nn.softplus(p["log_dt"])
        a = jnp.exp(-jnp.exp(p["log_a"]) * dt)
        driven = (x @ p["b"]) * dt

        def join(left: Any, right: Any) -> Any:
            return left[0] * right[0], right[0] * left[1] + right[1]

        _, h = jax.lax.associative_scan(join, (jnp.broadcast_to(a, driven.shape), driven), axis=1)
        return ((jax.nn.gelu(h) @ p["c"] + x * p["skip"] - y) ** 2).mean()

    def batch() -> tuple[Any, Any]:
        return draw.normal(3, length, 4), draw.normal(3, length, 4)

    return fit(draw, steps, params, loss_fn, draw.optimizer("adamw", "adam", "lion"), batch)


@script("optax")
def ctc_with_convolution(draw: Draw, steps: int) -> Any:
    """A temporal convolution in front of optax's CTC loss, which works on logarithms of probabilities."""
    import jax
    import jax.numpy as jnp
    import optax

    width, labels = draw.choose(8, 12), 6
    params = {"k": draw.weights(3, 5, width), "b": jnp.zeros(width), "head": draw.weights(width, labels)}

    def loss_fn(p: Any, x: Any, y: Any, lengths: Any) -> Any:
        h = jax.lax.conv_general_dilated(x, p["k"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
        logits = jax.nn.relu(h + p["b"]) @ p["head"]
        padding = (jnp.arange(y.shape[1]) >= lengths[:, None]).astype(jnp.float32)
        return optax.ctc_loss(logits, jnp.zeros(logits.shape[:2]), y, padding).mean()

    def batch() -> tuple[Any, ...]:
        return draw.normal(2, 8, 5), draw.integers(labels - 1, 2, 3) + 1, draw.integers(3, 2) + 1

    return fit(draw, steps, params, loss_fn, draw.optimizer("adam", "sgd"), batch)


@script("optax")
def ppo_with_gae(draw: Draw, steps: int) -> Any:
    """PPO: advantages by a reversed scan, normalised; the clipped ratio, the value's loss, the entropy."""
    import jax
    import jax.numpy as jnp
    import optax

    width, gamma, lam, clip = draw.choose(8, 16), draw.choose(0.99, 0.95), 0.95, draw.choose(0.1, 0.2)
    params = {
        "w": draw.weights(4, width),
        "b": jnp.zeros(width),
        "pi": draw.weights(width, 3),
        "v": draw.weights(width, 1),
    }
    tx = draw.optimizer("adam", "rmsprop")
    state = tx.init(params)

    def policy(p: Any, x: Any) -> Any:
        h = jnp.tanh(x @ p["w"] + p["b"])
        return jax.nn.log_softmax(h @ p["pi"]), (h @ p["v"])[..., 0]

    @jax.jit
    def train_step(
        params: Any, state: Any, obs: Any, actions: Any, rewards: Any, dones: Any, old: Any
    ) -> Any:
        _, values = policy(params, obs)
        following = jnp.concatenate([values[1:], values[-1:]])
        deltas = rewards + gamma * following * (1 - dones) - values

        def back(carry: Any, row: Any) -> Any:
            delta, done = row
            carry = delta + gamma * lam * (1 - done) * carry
            return carry, carry

        _, advantages = jax.lax.scan(back, jnp.zeros(rewards.shape[1]), (deltas, dones), reverse=True)
        returns = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)

        def loss_fn(params: Any) -> Any:
            logs, new = policy(params, obs)
            taken = jnp.take_along_axis(logs, actions[..., None], -1)[..., 0]
            ratio = jnp.exp(taken - old)
            gain = jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - clip, 1 + clip) * advantages).mean()
            entropy = -(jnp.exp(logs) * logs).sum(-1).mean()
            return -gain + 0.5 * ((new - returns) ** 2).mean() - 0.01 * entropy

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), moved, loss

    loss: Any = None
    for _ in range(steps):
        batch = draw.normal(6, 4, 4), draw.integers(3, 6, 4), draw.normal(6, 4)
        dones, old = draw.integers(2, 6, 4).astype(jnp.float32), draw.normal(6, 4, scale=0.2) - 1.1
        params, state, loss = train_step(params, state, *batch, dones, old)
    return loss


@script("optax")
def double_dqn_target(draw: Draw, steps: int) -> Any:
    """Double Q-learning with a target network that follows by Polyak averaging; Huber loss."""
    import jax
    import jax.numpy as jnp
    import optax

    width, tau, gamma = draw.choose(12, 16), draw.choose(0.005, 0.05), 0.99
    params = {"w": draw.weights(5, width), "b": jnp.zeros(width), "q": draw.weights(width, 4)}
    target, tx, activation = params, draw.optimizer("adam", "sgd", "rmsprop"), draw.activation()
    state = tx.init(params)

    def values(p: Any, x: Any) -> Any:
        return activation(x @ p["w"] + p["b"]) @ p["q"]

    @jax.jit
    def train_step(
        params: Any, target: Any, state: Any, obs: Any, actions: Any, rewards: Any, after: Any
    ) -> Any:
        best = values(params, after).argmax(-1)
        wanted = rewards + gamma * values(target, after)[jnp.arange(best.size), best]

        def loss_fn(params: Any) -> Any:
            chosen = jnp.take_along_axis(values(params, obs), actions[:, None], 1)[:, 0]
            return optax.huber_loss(chosen, jax.lax.stop_gradient(wanted)).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moved = tx.update(grads, state, params)
        new = optax.apply_updates(params, updates)
        return new, optax.incremental_update(new, target, tau), moved, loss

    loss: Any = None
    for _ in range(steps):
        batch = draw.normal(8, 5), draw.integers(4, 8), draw.normal(8), draw.normal(8, 5)
        params, target, state, loss = train_step(params, target, state, *batch)
    return loss
