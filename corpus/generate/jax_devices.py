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
