"""TensorFlow: results whose size depends on the data, as bounded dynamic shapes."""

from collections.abc import Iterator

import tensorflow as tf
from programs import Call, program


@program("set-dimension-size", "bounded dynamic shape", "custom-call SliceToDynamic")
def dynamic_where() -> Iterator[Call]:
    """tf.where and boolean_mask: the positions and values of the true elements."""

    @tf.function(jit_compile=True)
    def where_positions(x):
        return tf.where(x > 0.0)

    @tf.function(jit_compile=True)
    def masked_values(x):
        return tf.boolean_mask(x, x > 0.0) * 2.0

    x = tf.constant([1.0, -1.0, 0.0, 3.0, -2.0, 5.0])
    yield where_positions, x
    yield masked_values, x


@program("sort", "while", "bounded dynamic shape")
def dynamic_unique() -> Iterator[Call]:
    """tf.unique: distinct values, and a sum over them that must see the valid prefix only."""

    @tf.function(jit_compile=True)
    def unique_values(x):
        return tf.unique(x).y

    @tf.function(jit_compile=True)
    def unique_sum(x):
        return tf.reduce_sum(tf.unique(x).y)

    x = tf.constant([3, 1, 3, 2, 1])
    yield unique_values, x
    yield unique_sum, x
