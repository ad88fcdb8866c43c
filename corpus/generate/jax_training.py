"""JAX: training steps, forward and backward, with the optimiser inside."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_programs import array
from programs import Call, program


def cross_entropy(logits, labels):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -jnp.mean(chosen)


def adam(parameters, gradients, state, rate=1e-2):
    """One Adam step; `state` is (step count, first moments, second moments)."""
    step, mean, square = state
    step = step + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, gradients)
    first, second = 1 - 0.9**step, 1 - 0.999**step

    def update(p, m, v):
        return p - rate * (m / first) / (jnp.sqrt(v / second) + 1e-8)

    return jax.tree.map(update, parameters, mean, square), (step, mean, square)


def pixels(features: tuple[int, ...], size: int = 8):
    labels = np.random.default_rng(7).integers(0, 10, size).astype(np.int32)
    return array(size, *features, seed=8), labels


def mlp_parameters():
    return {"w1": array(49, 16) * 0.1, "b1": array(16), "w2": array(16, 10) * 0.1, "b2": array(10)}


def mlp(parameters, images):
    hidden = jax.nn.relu(images @ parameters["w1"] + parameters["b1"])
    return hidden @ parameters["w2"] + parameters["b2"]


@program("dot", "gather", "scatter", "reduce", "select")
def train_mnist_mlp() -> Iterator[Call]:
    """One step of stochastic gradient descent on a two-layer perceptron."""

    def train_mnist_mlp(parameters, images, labels):
        loss, gradients = jax.value_and_grad(lambda p: cross_entropy(mlp(p, images), labels))(parameters)
        return loss, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)

    yield train_mnist_mlp, mlp_parameters(), *pixels((49,))


@program("dot", "power", "sqrt", "divide")
def train_mnist_mlp_adam() -> Iterator[Call]:
    """The same perceptron with Adam, whose bias correction depends on the step number."""

    def train_mnist_mlp_adam(parameters, state, images, labels):
        gradients = jax.grad(lambda p: cross_entropy(mlp(p, images), labels))(parameters)
        return adam(parameters, gradients, state)

    parameters = mlp_parameters()
    zeros = jax.tree.map(np.zeros_like, parameters)
    yield train_mnist_mlp_adam, parameters, (np.int32(0), zeros, zeros), *pixels((49,))


@program("convolution", "reduce-window", "select-and-scatter", "dot")
def train_mnist_cnn() -> Iterator[Call]:
    """One step on a convolutional network with max pooling and Adam."""

    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def network(p, images):
        x = pool(jax.nn.relu(convolve(images, p["c1"])))
        x = pool(jax.nn.relu(convolve(x, p["c2"])))
        return x.reshape(x.shape[0], -1) @ p["w"] + p["b"]

    def train_mnist_cnn(parameters, state, images, labels):
        gradients = jax.grad(lambda p: cross_entropy(network(p, images), labels))(parameters)
        return adam(parameters, gradients, state)

    parameters = {
        "c1": array(3, 3, 1, 4) * 0.3,
        "c2": array(3, 3, 4, 6) * 0.2,
        "w": array(2 * 2 * 6, 10) * 0.2,
        "b": array(10),
    }
    zeros = jax.tree.map(np.zeros_like, parameters)
    yield train_mnist_cnn, parameters, (np.int32(3), zeros, zeros), *pixels((8, 8, 1), size=4)


VOCABULARY, LENGTH, WIDTH, HEADS = 17, 6, 8, 2


def transformer_parameters(dtype: str):
    scale = np.asarray(0.2, dtype)
    shapes = {"embed": (VOCABULARY, WIDTH), "position": (LENGTH, WIDTH), "qkv": (WIDTH, 3 * WIDTH)}
    shapes |= {"out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    return {name: array(*shape).astype(dtype) * scale for name, shape in shapes.items()}


def _normalise(x):
    wide = x.astype(jnp.float32)
    wide = (wide - wide.mean(-1, keepdims=True)) * lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
    return wide.astype(x.dtype)


def _attention(p, x):
    batch = x.shape[0]
    query, key, value = jnp.split(_normalise(x) @ p["qkv"], 3, axis=-1)
    heads = [t.reshape(batch, LENGTH, HEADS, WIDTH // HEADS) for t in (query, key, value)]
    scores = jnp.einsum("bqhd,bkhd->bhqk", heads[0], heads[1]) / 2.0
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, jnp.asarray(-1e9, scores.dtype)))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, heads[2]).reshape(x.shape)
    return x + mixed @ p["out"]


def _transformer(p, tokens):
    """A one-layer decoder with tied embeddings: `tokens` [batch, LENGTH] to logits over the vocabulary."""
    x = p["embed"][tokens] + p["position"]
    x = _attention(p, x)
    x = x + jax.nn.gelu(_normalise(x) @ p["up"]) @ p["down"]
    return _normalise(x) @ p["embed"].T


def token_batch():
    return np.random.default_rng(5).integers(0, VOCABULARY, (2, LENGTH)).astype(np.int32)


def transformer_step(parameters, tokens):
    def loss(p):
        logits = _transformer(p, tokens).astype(jnp.float32)
        return cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))

    value, gradients = jax.value_and_grad(loss)(parameters)
    return value, jax.tree.map(lambda p, g: p - jnp.asarray(0.1, p.dtype) * g, parameters, gradients)


@program("dot", "softmax", "gather")
def transformer() -> Iterator[Call]:
    """The forward pass of a decoder layer in f32."""

    def transformer(parameters, tokens):
        return _transformer(parameters, tokens)

    yield transformer, transformer_parameters("float32"), token_batch()


@program("dot", "softmax", "gather", "scatter")
def train_transformer() -> Iterator[Call]:
    """A training step of the decoder layer in f32."""

    def train_transformer(parameters, tokens):
        return transformer_step(parameters, tokens)

    yield train_transformer, transformer_parameters("float32"), token_batch()


@program("bf16", "dot", "convert")
def transformer_bf16() -> Iterator[Call]:
    """The forward pass and the training step of the decoder layer in bf16, normalisation in f32."""

    def transformer_bf16(parameters, tokens):
        return _transformer(parameters, tokens)

    def train_transformer_bf16(parameters, tokens):
        return transformer_step(parameters, tokens)

    yield transformer_bf16, transformer_parameters("bfloat16"), token_batch()
    yield train_transformer_bf16, transformer_parameters("bfloat16"), token_batch()
