"""Scripts on four devices of the CPU: shardings that XLA spreads out, and programs that say how."""

from __future__ import annotations

from typing import Any

from benchmarks.training_steps.drawing import Draw, script

_DEVICES = 4


def _params(draw: Draw, width: int) -> dict[str, Any]:
    import jax.numpy as jnp

    return {"w": draw.weights(8, width), "b": jnp.zeros(width), "out": draw.weights(width, 4)}


def _loss(p: Any, x: Any, y: Any, activation: Any) -> Any:
    import optax

    return optax.softmax_cross_entropy_with_integer_labels(activation(x @ p["w"] + p["b"]) @ p["out"], y)


@script("optax", devices=_DEVICES)
def data_and_tensor_parallel(draw: Draw, steps: int) -> Any:
    """The batch over one axis, columns and rows of the weights over the other; XLA adds the exchanges."""
    import jax
    import numpy as np
    import optax
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
    activation, tx = draw.activation(), draw.optimizer("adam", "adamw", "momentum")
    specs = {"w": P(None, "model"), "b": P("model"), "out": P("model", None)}
    params = {
        name: jax.device_put(leaf, NamedSharding(mesh, specs[name]))
        for name, leaf in _params(draw, draw.choose(8, 16)).items()
    }
    state = jax.jit(tx.init)(params)

    @jax.jit
    def train_step(params: Any, state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: _loss(p, x, y, activation).mean())(params)
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), moved, loss

    loss: Any = None
    for _ in range(steps):
        batch = draw.normal(8, 8), draw.integers(4, 8)
        batch = jax.device_put(batch, NamedSharding(mesh, P("data")))
        params, state, loss = train_step(params, state, *batch)
    return loss


@script("optax", devices=_DEVICES)
def shard_map_data_parallel(draw: Draw, steps: int) -> Any:
    """Every device has the parameters and a part of the batch; gradients are averaged with pmean."""
    import jax
    import numpy as np
    import optax
    from jax.sharding import Mesh
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()), ("batch",))
    activation, tx = draw.activation(), draw.optimizer("adam", "adamw", "lion")
    params = _params(draw, draw.choose(8, 12))
    state = tx.init(params)

    def local(params: Any, state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: _loss(p, x, y, activation).mean())(params)
        loss, grads = jax.lax.pmean((loss, grads), "batch")
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), moved, loss

    @jax.jit
    def train_step(params: Any, state: Any, x: Any, y: Any) -> Any:
        specs = P(), P(), P("batch"), P("batch")
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(
            params, state, x, y
        )

    loss: Any = None
    for _ in range(steps):
        params, state, loss = train_step(params, state, draw.normal(8, 8), draw.integers(4, 8))
    return loss


@script("optax", devices=_DEVICES)
def zero_sharded_optimizer(draw: Draw, steps: int) -> Any:
    """Moments spread over devices: gradients by psum_scatter, new parameters by all_gather; donated."""
    from functools import partial

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.flatten_util import ravel_pytree
    from jax.sharding import Mesh
    from jax.sharding import PartitionSpec as P

    mesh, rate = Mesh(np.array(jax.devices()), ("d",)), draw.between(1e-3, 1e-1)
    width, activation = draw.choose(8, 16), draw.activation()
    flat, unravel = ravel_pytree(_params(draw, width))
    size = flat.size
    flat = jnp.pad(flat, (0, -size % _DEVICES))

    def local(flat: Any, m: Any, v: Any, count: Any, x: Any, y: Any) -> Any:
        loss, grad = jax.value_and_grad(lambda f: _loss(unravel(f[:size]), x, y, activation).mean())(flat)
        grad = jax.lax.psum_scatter(grad, "d", tiled=True) / _DEVICES
        m, v, count = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad**2, count + 1
        step = (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8)
        own = jax.lax.dynamic_slice_in_dim(flat, jax.lax.axis_index("d") * m.size, m.size) - rate * step
        return jax.lax.all_gather(own, "d", tiled=True), m, v, count, jax.lax.pmean(loss, "d")

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def train_step(flat: Any, m: Any, v: Any, count: Any, x: Any, y: Any) -> Any:
        specs = P(), P("d"), P("d"), P(), P("d"), P("d")
        out = P(), P("d"), P("d"), P(), P()
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=out, check_vma=False)(
            flat, m, v, count, x, y
        )

    m, v, count, loss = jnp.zeros_like(flat), jnp.zeros_like(flat), jnp.float32(0), None
    for _ in range(steps):
        flat, m, v, count, loss = train_step(flat, m, v, count, draw.normal(8, 8), draw.integers(4, 8))
    return loss


@script("optax", devices=_DEVICES)
def pipeline_by_ppermute(draw: Draw, steps: int) -> Any:
    """A stage of the network on each device; activations travel to the next one by ppermute."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from jax.sharding import Mesh
    from jax.sharding import PartitionSpec as P

    mesh, width, activation = Mesh(np.array(jax.devices()), ("stage",)), draw.choose(6, 8), draw.activation()
    params = {"w": draw.weights(_DEVICES, width, width), "b": jnp.zeros((_DEVICES, width))}
    tx = draw.optimizer("adam", "momentum")
    state, parts = tx.init(params), 3

    def local(params: Any, x: Any, y: Any) -> Any:
        rank = jax.lax.axis_index("stage")
        ring = [(n, (n + 1) % _DEVICES) for n in range(_DEVICES)]
        held, out = jnp.zeros_like(x[0]), jnp.zeros_like(x)
        for tick in range(parts + _DEVICES - 1):
            held = jnp.where((rank == 0) & (tick < parts), x[min(tick, parts - 1)], held)
            held = activation(held @ params["w"][0] + params["b"][0])
            done = max(0, tick - _DEVICES + 1)
            out = jnp.where((rank == _DEVICES - 1) & (tick >= _DEVICES - 1), out.at[done].set(held), out)
            held = jax.lax.ppermute(held, "stage", ring)
        mine = jnp.where(rank == _DEVICES - 1, ((out - y) ** 2).mean(), 0.0)
        return jax.lax.psum(mine, "stage")

    @jax.jit
    def train_step(params: Any, state: Any, x: Any, y: Any) -> Any:
        specs = P("stage"), P(), P()
        whole = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
        loss, grads = jax.value_and_grad(whole)(params, x, y)
        updates, moved = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), moved, loss

    loss: Any = None
    for _ in range(steps):
        params, state, loss = train_step(
            params, state, draw.normal(parts, 4, width), draw.normal(parts, 4, width)
        )
    return loss
