"""TensorFlow: the programs of the XLA and tf.function guides."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from programs import Call, program


def array(*shape: int, seed: int = 0) -> tf.Tensor:
    """Normal f32 values from a seed."""
    return tf.constant(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


@program("multiply", "add", "reduce")
def model_fn() -> Iterator[Call]:
    """reduce_sum(x + y * z)."""

    @tf.function(jit_compile=True)
    def model_fn(x, y, z):
        return tf.reduce_sum(x + y * z)

    yield model_fn, array(4, 6), array(4, 6, seed=1), array(4, 6, seed=2)


@program("while", "conditional")
def fizzbuzz() -> Iterator[Call]:
    """AutoGraph turns `for` over tf.range and `if` into a loop with conditionals."""

    @tf.function(jit_compile=True)
    def fizzbuzz(n):
        codes = tf.TensorArray(tf.int32, size=20)
        for i in tf.range(20):
            if (i + 1) % 15 == 0:
                value = tf.constant(-15)
            elif (i + 1) % 5 == 0:
                value = tf.constant(-5)
            elif (i + 1) % 3 == 0:
                value = tf.constant(-3)
            else:
                value = i + n
            codes = codes.write(i, value)
        return codes.stack()

    yield fizzbuzz, tf.constant(1)


@program("while", "recompilation without retracing")
def collatz() -> Iterator[Call]:
    """One trace for all lengths but a module for each; and a loop whose trip count depends on the data."""

    @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None], tf.int32)])
    def next_collatz(x):
        return tf.where(x % 2 == 0, x // 2, 3 * x + 1)

    @tf.function(jit_compile=True)
    def collatz(n):
        steps = tf.constant(0)
        while n > 1:
            n = tf.where(n % 2 == 0, n // 2, 3 * n + 1)
            steps += 1
        return steps

    for length in (1, 2, 3):
        yield next_collatz, tf.range(1, length + 1)
    yield collatz, tf.constant(27)


@program("while", "dynamic-update-slice", "dot", "gradient")
def dynamic_rnn() -> Iterator[Call]:
    """A recurrent network over a TensorArray of known size, and its gradient."""

    def states(inputs, w, u):
        outputs = tf.TensorArray(tf.float32, size=5, element_shape=(3, 4))
        state = tf.zeros((3, 4))
        for i in tf.range(5):
            state = tf.tanh(inputs[i] @ w + state @ u)
            outputs = outputs.write(i, state)
        return outputs.stack()

    @tf.function(jit_compile=True)
    def dynamic_rnn(inputs, w, u):
        return states(inputs, w, u)

    @tf.function(jit_compile=True)
    def dynamic_rnn_gradient(inputs, w, u):
        with tf.GradientTape() as tape:
            tape.watch([w, u])
            loss = tf.reduce_mean(states(inputs, w, u) ** 2)
        return tape.gradient(loss, [w, u])

    arguments = array(5, 3, 2), array(2, 4, seed=1), array(4, 4, seed=2)
    yield dynamic_rnn, *arguments
    yield dynamic_rnn_gradient, *arguments


@program("recompilation")
def recompiled_on_launch() -> Iterator[Call]:
    """One function, three shapes, three traces and modules."""

    @tf.function(jit_compile=True)
    def recompiled_on_launch(a, b):
        return a + b

    for length in (10, 100, 1000):
        yield recompiled_on_launch, tf.ones([1, length]), tf.ones([1, length])


@program("while", "gradient")
def while_gradient() -> Iterator[Call]:
    """The gradient of a while loop that has a maximum number of iterations."""

    @tf.function(jit_compile=True)
    def while_gradient(x, limit):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(
                lambda v: tf.reduce_sum(v) < limit, lambda v: (v * v + 0.5,), [x], maximum_iterations=6
            )[0]
        return y, tape.gradient(y, x)

    yield while_gradient, tf.constant([0.3, 0.7]), tf.constant(40.0)


@program("forward and backward modules")
def outer_gradient() -> Iterator[Call]:
    """The tape stands outside of the compiled function: one module forwards, one backwards."""

    @tf.function(jit_compile=True)
    def layer(x, w):
        return tf.nn.softmax(tf.tanh(x @ w))

    def outer_gradient(x, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = layer(x, w)
        return tape.gradient(loss, w)

    yield outer_gradient, array(3, 4), array(4, 5, seed=1)


@program("unrolled loop", "recompilation")
def loops() -> Iterator[Call]:
    """A Python loop, whose steps are unrolled, beside the same loop over tf.range."""

    @tf.function(jit_compile=True)
    def unrolled(x, steps):
        for _ in range(steps):
            x = x * 1.5 + tf.sin(x)
        return x

    @tf.function(jit_compile=True)
    def rolled(x, steps):
        for _ in tf.range(steps):
            x = x * 1.5 + tf.sin(x)
        return x

    for steps in (3, 10):
        yield unrolled, array(4), steps
    for steps in (3, 10):
        yield rolled, array(4), tf.constant(steps)


@program("recompilation for a value")
def value_constants() -> Iterator[Call]:
    """A shape given as an argument becomes a constant of the module: one layout, two modules."""

    @tf.function(jit_compile=True)
    def reshaped(x, shape):
        return tf.reshape(x, shape) * 2.0

    for shape in ([3, 2], [1, 6]):
        yield reshaped, array(2, 3), tf.constant(shape)


CLUSTERING = (
    ("TF_XLA_FLAGS", "--tf_xla_clustering_debug --tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"),
    ("TF_DUMP_GRAPH_PREFIX", "dump"),
)


@program("cluster", environment=CLUSTERING)
def auto_clustering() -> Iterator[Call]:
    """A function without jit_compile, clustered by the grappler pass."""

    @tf.function
    def clustered(x, w):
        hidden = tf.nn.relu(tf.matmul(x, w) + 1.0)
        distinct = tf.unique(tf.cast(tf.reshape(hidden, [-1]) * 4.0, tf.int32)).y
        return tf.reduce_mean(tf.exp(-hidden), axis=1), tf.size(distinct)

    yield clustered, array(3, 4), array(4, 5, seed=1)
