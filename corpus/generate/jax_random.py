"""JAX: random bits and distributions with both generators."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_programs import array
from programs import Call, program

KEY = np.array([0, 42], np.uint32)


@program("threefry", "xor", "shift")
def random_threefry() -> Iterator[Call]:
    """Uniform and normal numbers from the threefry generator, written out in plain arithmetic."""

    def random_uniform(key):
        return jax.random.uniform(jax.random.wrap_key_data(key), (3, 4), minval=-1.0)

    def random_normal(key):
        first, second = jax.random.split(jax.random.wrap_key_data(key))
        return jax.random.normal(first, (5,)), jax.random.randint(second, (6,), 0, 10)

    yield random_uniform, KEY
    yield random_normal, KEY


@program("threefry", "sort", "while")
def random_permutation() -> Iterator[Call]:
    """A shuffle, which is a sort by random keys, and a choice without replacement."""

    def random_permutation(key):
        return jax.random.permutation(jax.random.wrap_key_data(key), 10)

    yield random_permutation, KEY


@program("rng-bit-generator")
def random_rbg() -> Iterator[Call]:
    """Bits, uniform and normal numbers from rng-bit-generator, both algorithms."""

    def random_rbg(key, state):
        key = jax.random.wrap_key_data(key, impl="rbg")
        philox = lax.rng_bit_generator(state, (5,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)
        fry = lax.rng_bit_generator(state, (6,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
        return jax.random.uniform(key, (4,)), jax.random.normal(key, (3,)), philox, fry

    state = np.array([1, 2, 3, 4], np.uint32)
    yield random_rbg, state, state


@program("rng-bit-generator", "select")
def dropout() -> Iterator[Call]:
    """A layer with dropout and its gradient, which must draw the same mask."""

    def dropout(key, x, w):
        def loss(w):
            hidden = jax.nn.relu(x @ w)
            keep = jax.random.bernoulli(jax.random.wrap_key_data(key, impl="unsafe_rbg"), 0.8, hidden.shape)
            return jnp.sum(jnp.where(keep, hidden / 0.8, 0.0))

        return jax.value_and_grad(loss)(w)

    yield dropout, np.array([1, 2, 3, 4], np.uint32), array(4, 6), array(6, 5, seed=1)
