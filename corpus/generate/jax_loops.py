"""JAX: loops with many carried values, nested loops and scans by association."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_programs import array
from programs import Call, program


@program("while", "tuple", "many carried values")
def while_many_values() -> Iterator[Call]:
    """A loop that carries seven values of different types and shapes, two of which never change."""

    def while_many_values(x, n, flag, bias):
        def step(state):
            i, x, total, count, flag, bias, history = state
            x = jnp.where(flag, x * 0.5 + bias, x - bias)
            history = lax.dynamic_update_index_in_dim(history, x.sum(), i, 0)
            return i + 1, x, total + x.mean(), count + jnp.sum(x > 0, dtype=jnp.int32), ~flag, bias, history

        start = (jnp.int32(0), x, jnp.float32(0), jnp.int32(0), flag, bias, jnp.zeros(8))
        return lax.while_loop(lambda state: (state[0] < n) & (state[2] < 100.0), step, start)

    yield while_many_values, array(3, 4), np.int32(7), np.bool_(True), array(4, seed=1)


@program("while", "nested loops", "dynamic-update-slice")
def nested_loops() -> Iterator[Call]:
    """A loop in a loop: powers of a matrix, then a table filled cell by cell."""

    def nested_loops(a, n):
        def outer(i, table):
            power = lax.fori_loop(0, i, lambda _, m: m @ a, jnp.eye(3, dtype=a.dtype))
            return lax.fori_loop(0, 3, lambda j, t: t.at[i, j].set(power[j].sum()), table)

        return lax.fori_loop(0, n, outer, jnp.zeros((5, 3), a.dtype))

    yield nested_loops, array(3, 3) * 0.5, np.int32(4)


@program("slice", "pad", "concatenate")
def associative_scans() -> Iterator[Call]:
    """Prefix scans by association: a linear recurrence and a running maximum, forwards and backwards."""

    def associative_scans(a, b):
        def compose(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        return lax.associative_scan(compose, (a, b)), lax.associative_scan(jnp.maximum, b, reverse=True)

    yield associative_scans, array(7, 2), array(7, 2, seed=1)


@program("while", "conditional", "early exit")
def newton_roots() -> Iterator[Call]:
    """Newton's method to convergence for a batch: vmap of a while loop with a predicate per element."""

    def newton_roots(c):
        def solve(c):
            def unfinished(state):
                x, previous, steps = state
                return (jnp.abs(x - previous) > 1e-6) & (steps < 50)

            def step(state):
                x, _, steps = state
                return x - (x * x - c) / (2 * x), x, steps + 1

            return lax.while_loop(unfinished, step, (c, jnp.float32(0), jnp.int32(0)))[::2]

        return jax.vmap(solve)(c)

    yield newton_roots, np.array([2.0, 9.0, 0.25, 100.0], np.float32)
