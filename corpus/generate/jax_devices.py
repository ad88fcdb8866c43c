"""JAX: programs for eight devices."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jax_programs import array
from programs import Call, program


def _mesh():
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))


@program("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", devices=8)
def collectives() -> Iterator[Call]:
    """Each collective by hand, in shard_map over a 4 by 2 mesh."""
    mesh = _mesh()

    def shard(a):
        ring = [(i, (i + 1) % 4) for i in range(4)]
        return (
            lax.psum(a, "x"),
            lax.pmax(a, ("x", "y")),
            lax.all_gather(a, "y", tiled=True),
            lax.psum_scatter(a, "x", tiled=True),
            lax.all_to_all(a, "x", 0, 1, tiled=True),
            lax.ppermute(a, "x", ring),
            a + lax.axis_index("x").astype(a.dtype),
        )

    spec = PartitionSpec("x", "y")
    mapped = jax.shard_map(shard, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)

    def collectives(a):
        return mapped(a)

    placed = jax.device_put(array(16, 8), NamedSharding(mesh, spec))
    yield collectives, placed


@program("sharding", "dot", "all-reduce", "spmd partitioner", devices=8)
def sharded_mlp() -> Iterator[Call]:
    """Two layers whose weights are split over the mesh; the partitioner adds the collectives."""
    mesh = _mesh()

    def sharded_mlp(x, w1, w2):
        hidden = jax.nn.relu(x @ w1)
        hidden = lax.with_sharding_constraint(hidden, NamedSharding(mesh, PartitionSpec("x", "y")))
        return jnp.tanh(hidden @ w2)

    def place(value: np.ndarray, *spec: str | None):
        return jax.device_put(value, NamedSharding(mesh, PartitionSpec(*spec)))

    x, w1 = place(array(8, 6), "x"), place(array(6, 8, seed=1), None, "y")
    yield sharded_mlp, x, w1, place(array(8, 4, seed=2), "y", None)


@program("pmap", "all-reduce", "collective-permute", "partition-id", devices=8)
def pmap_step() -> Iterator[Call]:
    """A step of data-parallel training in pmap: a model per device, gradients averaged, neighbours heard."""

    def pmap_step(w, x, y):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
        gradient = lax.pmean(gradient, "device")
        heard = lax.ppermute(loss, "device", [(i, (i + 3) % 8) for i in range(8)])
        return w - 0.1 * gradient, lax.psum(loss, "device"), heard, lax.axis_index("device")

    step = jax.pmap(pmap_step, axis_name="device", in_axes=(None, 0, 0))
    yield step, array(6, 3, seed=1), array(8, 4, 6), array(8, 4, 3, seed=2)


@program("sharding", "all-reduce", "while", "spmd partitioner", devices=8)
def sharded_train_step() -> Iterator[Call]:
    """A step of training with momentum: examples over x, weights over y, two layers in a scan."""
    mesh = _mesh()

    def loss(weights, x, y):
        hidden, _ = lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights["layers"])
        logits = hidden @ weights["head"]
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
        return -jnp.mean(picked)

    def sharded_train_step(weights, momentum, x, y):
        value, gradient = jax.value_and_grad(loss)(weights, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return jax.tree.map(lambda w, m: w - 0.1 * m, weights, momentum), momentum, value

    def place(value: np.ndarray, *spec: str | None):
        return jax.device_put(value, NamedSharding(mesh, PartitionSpec(*spec)))

    def tree(seed: int):
        return {
            "layers": place(array(2, 8, 8, seed=seed), None, None, "y"),
            "head": place(array(8, 6, seed=seed + 1), "y", None),
        }

    labels = np.arange(16, dtype=np.int32) % 6
    yield sharded_train_step, tree(1), tree(3), place(array(16, 8), "x", None), place(labels, "x")
