"""TensorFlow: training steps with variables, by hand and through Keras."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from programs import Call, program
from tf_programs import array


def _labels(size: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(7).integers(0, 10, size).astype(np.int32))


def _loss(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def _descend(variables, gradients):
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(0.1 * gradient)


@program("dot", "input_output_alias")
def train_mnist_mlp() -> Iterator[Call]:
    """A step of gradient descent on tf.Variables, which become aliased parameters."""
    variables = [
        tf.Variable(array(*shape) * 0.1, name=name)
        for name, shape in (("w1", (49, 16)), ("b1", (16,)), ("w2", (16, 10)), ("b2", (10,)))
    ]

    @tf.function(jit_compile=True)
    def train_mnist_mlp(images, labels):
        w1, b1, w2, b2 = variables
        with tf.GradientTape() as tape:
            loss = _loss(labels, tf.nn.relu(images @ w1 + b1) @ w2 + b2)
        _descend(variables, tape.gradient(loss, variables))
        return loss

    yield train_mnist_mlp, array(8, 49, seed=8), _labels(8)


@program("convolution", "reduce-window", "select-and-scatter")
def train_mnist_cnn() -> Iterator[Call]:
    """A step on a convolutional network with bias and max pooling."""
    kernel = tf.Variable(array(3, 3, 1, 4) * 0.3, name="kernel")
    bias = tf.Variable(array(4), name="bias")
    dense = tf.Variable(array(64, 10) * 0.2, name="dense")

    @tf.function(jit_compile=True)
    def train_mnist_cnn(images, labels):
        with tf.GradientTape() as tape:
            x = tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME") + bias)
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
            loss = _loss(labels, tf.reshape(x, [4, -1]) @ dense)
        variables = [kernel, bias, dense]
        _descend(variables, tape.gradient(loss, variables))
        return loss

    yield train_mnist_cnn, array(4, 8, 8, 1), _labels(4)


@program("recompilation", "keras")
def keras_fit() -> Iterator[Call]:
    """Keras fit over 12 samples in batches of 8: the last, smaller batch compiles the step again."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, jit_compile=True)

    def fit(images, labels):
        model.fit(images, labels, batch_size=8, epochs=1, shuffle=False, verbose=0)

    yield fit, array(12, 5), _labels(12) % 3
