"""TensorFlow: the stateful generator, which cannot be replayed, and the stateless ones, which can."""

from collections.abc import Iterator

import tensorflow as tf
from programs import Call, program


@program("rng", "rng-get-and-update-state")
def random_stateful() -> Iterator[Call]:
    """tf.random.uniform, normal and a dropout: `rng` instructions, different on each run."""

    @tf.function(jit_compile=True)
    def random_stateful(x):
        noise = tf.random.uniform([3, 4]) + tf.random.normal([3, 4])
        counts = tf.random.uniform([4], 0, 10, tf.int32)
        return x + noise, counts, tf.nn.dropout(x, 0.5)

    yield random_stateful, tf.ones([3, 4])


@program("rng-bit-generator", "xor", "shift")
def random_stateless() -> Iterator[Call]:
    """Stateless draws from a seed."""

    @tf.function(jit_compile=True)
    def random_stateless(seed):
        return tf.random.stateless_uniform([5], seed), tf.random.stateless_normal([4], seed)

    yield random_stateless, tf.constant([3, 4])


@program("rng-bit-generator", "input_output_alias")
def random_generator() -> Iterator[Call]:
    """tf.random.Generator: the state is a variable that the module reads and writes."""
    generator = tf.random.Generator.from_seed(5, alg="philox")

    @tf.function(jit_compile=True)
    def random_generator():
        return generator.uniform([6]), generator.normal([3])

    yield (random_generator,)
