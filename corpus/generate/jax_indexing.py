"""JAX: sorts, gathers, scatters and dynamic slices."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_programs import array
from programs import Call, program


def _awkward(*shape: int) -> np.ndarray:
    """Values with ties, both zeros, infinities and NaN among them."""
    values = np.round(array(*shape), 1)
    values.flat[:6] = [0.0, -0.0, np.nan, np.inf, -np.inf, values.flat[7]]
    return values


@program("sort", "is_stable", "comparator")
def sorts() -> Iterator[Call]:
    """Stable and unstable sorts, argsort, several keys, descending, along another axis."""

    def sorts(x, keys, payload):
        ascending = jnp.sort(x, axis=-1)
        order = jnp.argsort(x, axis=0, stable=True)
        descending = jnp.sort(x, axis=-1, descending=True)
        pairs = lax.sort((keys, payload), num_keys=1, is_stable=True)
        lexical = lax.sort((keys, x[0, : keys.size], payload), num_keys=2)
        unstable = lax.sort(payload, is_stable=False)
        return ascending, order, descending, pairs, lexical, unstable

    keys = np.array([3, 1, 3, 2, 1, 3, 2, 0], np.int32)
    yield sorts, _awkward(4, 9), keys, np.arange(8, dtype=np.float32)


@program("topk", "custom-call TopK", "sort")
def top_k() -> Iterator[Call]:
    """The largest elements of each row, the median and a search in sorted values."""

    def top_k(x, ordered, wanted):
        values, indices = lax.top_k(x, 3)
        return values, indices, jnp.median(x, axis=1), jnp.searchsorted(ordered, wanted)

    yield top_k, array(4, 11), np.sort(array(16)), array(5, seed=3)


@program("gather")
def gathers() -> Iterator[Call]:
    """Rows, columns, points, windows, negative and out-of-range indices in the three modes."""

    def gathers(x, rows, points):
        return (
            x[rows],
            x[:, rows],
            x[points[:, 0], points[:, 1]],
            jnp.take(x, rows, axis=0, mode="fill"),
            jnp.take(x, rows, axis=1, mode="clip"),
            jnp.take_along_axis(x, rows[None, :] % 4, axis=1),
            x[::2, 1:-1:3],
        )

    rows = np.array([0, 5, -1, 2, 9], np.int32)
    yield gathers, array(6, 7), rows, np.array([[0, 1], [5, 6], [2, 2]], np.int32)


@program("scatter", "unique_indices", "indices_are_sorted")
def scatters() -> Iterator[Call]:
    """Scatter with every combiner, duplicate and out-of-range indices, windows and slices."""

    def scatters(x, rows, updates, values):
        return (
            x.at[rows].set(updates, mode="drop"),
            x.at[rows].add(updates),
            x.at[rows].multiply(updates),
            x.at[rows].min(updates),
            x.at[rows].max(updates),
            x.at[rows, rows].add(values),
            x.at[1:5:2].set(0.0),
            x.at[jnp.arange(3)].add(1.0, indices_are_sorted=True, unique_indices=True),
            jax.ops.segment_sum(updates, rows, num_segments=4),
            jax.ops.segment_max(values, rows, num_segments=4),
        )

    rows = np.array([0, 2, 2, 5, 7], np.int32)
    yield scatters, array(6, 6), rows, array(5, 6, seed=1), array(5, seed=2)


@program("gather", "scatter", "operand_batching_dims")
def batched_indexing() -> Iterator[Call]:
    """Gathers and scatters under vmap, which turns a dimension into a batching dimension."""

    def batched_indexing(x, rows, updates):
        taken = jax.vmap(lambda a, i: a[i])(x, rows)
        scattered = jax.vmap(lambda a, i, u: a.at[i].add(u))(x, rows, updates)
        windows = jax.vmap(lambda a, i: lax.dynamic_slice(a, (i, 0), (2, 3)))(x, rows[:, 0])
        gradient = jax.grad(lambda x: jnp.sum(jax.vmap(lambda a, i: a[i])(x, rows) ** 2))(x)
        return taken, scattered, windows, gradient

    yield batched_indexing, array(3, 5, 4), array(3, 2, dtype="int32") % 5, array(3, 2, 4, seed=2)


@program("dynamic-slice", "dynamic-update-slice", "pad", "reverse", "concatenate")
def slices() -> Iterator[Call]:
    """Slices at run-time positions, also beyond the edge, pads with negative and interior padding, rolls."""

    def slices(x, row, column, byte, patch):
        window = lax.dynamic_slice(x, (row, column), (3, 2))
        updated = lax.dynamic_update_slice(x, patch, (byte, byte))
        padded = lax.pad(x, jnp.float32(9.0), ((1, -2, 1), (-1, 2, 0)))
        rolled = jnp.roll(x, 2, axis=1)
        return window, updated, padded, rolled, jnp.flip(x, 0), jnp.tile(x, (1, 2))

    yield slices, array(5, 6), np.int32(4), np.int32(-2), np.uint8(250), np.full((2, 3), 7, np.float32)
