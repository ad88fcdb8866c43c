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


@program("dynamic TensorArray", "wrong result of TensorFlow")
def truncated_tensor_array() -> Iterator[Call]:
    """A TensorArray that should grow: XLA keeps its first size and drops the writes beyond it."""

    @tf.function(jit_compile=True)
    def without_room(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for step in range(3):
            array = array.write(step, x * float(step))
        return array.stack()

    @tf.function(jit_compile=True)
    def room_for_one(x):
        array = tf.TensorArray(tf.float32, size=1, dynamic_size=True)
        for step in range(3):
            array = array.write(step, x * float(step))
        return array.stack()

    yield without_room, tf.constant(2.0)
    yield room_for_one, tf.constant(2.0)
